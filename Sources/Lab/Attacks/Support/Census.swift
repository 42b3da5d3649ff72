/// Names of which the attacker is to find out who has an account: half of them have one.
struct Census: Sendable {
    /// In random order.
    let names: [String]
    /// What he does not know.
    private let members: Set<String>
    /// His own account, and a name of which he knows that it is nobody's: what he learns from.
    let own: String
    let nobody: String

    /// Half as many victims as names are found for the row.
    init(of count: Int, on stage: Stage) async throws {
        var known: [String] = []
        for _ in 0..<count / 2 { known.append(try await stage.newVictim().name) }
        let attacker = try await stage.newVictim().name
        let strangers = Census.alike(known + [attacker])
        (own, nobody) = (attacker, strangers.last ?? "nobody")
        members = Set(known)
        names = (known + strangers.dropLast()).shuffled()
    }

    /// Whether these, and none of the others, have an account. By chance one of 4,096 for twelve names.
    func isRight(_ suspects: Set<String>) -> Bool { suspects == members }

    /// For people, and once all is over.
    func score(_ suspects: Set<String>) -> String { "\(hits(suspects)) of \(names.count) names right" }

    /// How many of the names were told right.
    func hits(_ suspects: Set<String>) -> Int {
        names.count { suspects.contains($0) == members.contains($0) }
    }

    /// Names of the same make and length that are nobody's: a name that says by itself what it is would prove nothing.
    private static func alike(_ names: [String]) -> [String] {
        var made: Set<String> = []
        return names.map { name in
            var other = name
            repeat {
                other = String(name.map { $0.isNumber ? Character(String(Int.random(in: 5...9))) : $0 })
            } while names.contains(other) || !made.insert(other).inserted
            return other
        }
    }
}
