/// A server that looks for the name first, and computes a slow hash only where it finds one, tells by its haste.
struct EnumerationTime: Attack {
    let name: AttackName = "enumeration-time"
    let column = Column.enumeration
    let sentence =
        "Signs in with a wrong password under twelve names, and tells by how long it takes which of them have an account."

    /// Of each name. Strangers have ten guesses at an account.
    private static let samples = 5
    /// What is shorter than that can be told on loopback, and is lost on any way through a network.
    private static let shortest = Duration.microseconds(200)

    func exemption(of row: RowProfile) -> String? { row.hasPasswords ? nil : "nobody signs in" }

    /// Twice, with other names each time: by chance all are right once in some ten million runs. A round that failed may have
    /// met a machine that had other things to do: there are four.
    func run(on stage: Stage) async throws -> Outcome {
        try await stage.seeThatItWorks(stage.newVictim())
        try await stage.proveForgery()
        var right = 0
        for round in 1...4 {
            let census = try await Census(of: 12, on: stage)
            let times = try await times(of: census.names + [census.own, census.nobody], on: stage)
            guard let own = times[census.own], let nobody = times[census.nobody] else {
                throw StageFault("\(stage.row.name): a name was not asked about")
            }
            let difference = "\(shown(own)) for his own name, \(shown(nobody)) for nobody's"
            guard max(own - nobody, nobody - own) >= EnumerationTime.shortest else {
                return .failed("an account and none take as long: \(difference)")
            }
            let suspects = EnumerationTime.members(among: census.names, times, own: own, nobody: nobody)
            stage.note(
                .attacker, "round \(round): \(difference); goes by that: \(census.score(suspects))",
                showing: census.names.map { "\($0) \(times[$0].map(shown) ?? "")" }.joined(separator: "\n"))
            if census.isRight(suspects) { right += 1 }
            if right == 2 { return .succeeded("each of 24 names was told right by the time alone: \(difference)") }
        }
        return .failed("the times do not tell all names of a dozen, in four rounds")
    }

    /// The shortest of a few answers for each name, asked in random order: what else the machine does makes some longer, and none
    /// shorter.
    private func times(of names: [String], on stage: Stage) async throws -> [String: Duration] {
        let probe = LoginProbe(stage: stage)
        var shortest: [String: Duration] = [:]
        for _ in 0..<EnumerationTime.samples {
            let order = names.shuffled()
            // The first on a connection is not counted.
            var requests = [try probe.request("\(names[0])x")]
            for name in order { requests.append(try probe.request(name)) }
            let answers = try await stage.network.timed(requests).dropFirst()
            for (name, answer) in zip(order, answers) {
                guard !answer.response.isLimit else {
                    throw StageFault("\(stage.row.name): too many attempts, before \(name) was asked about")
                }
                shortest[name] = min(shortest[name] ?? answer.taken, answer.taken)
            }
        }
        return shortest
    }

    /// Those on the side of the attacker's own account, half-way between it and a name that is nobody's.
    static func members(
        among names: [String], _ times: [String: Duration], own: Duration, nobody: Duration
    ) -> Set<String> {
        let middle = (own + nobody) / 2
        return Set(names.filter { ((times[$0] ?? middle) > middle) == (own > nobody) })
    }

    private func shown(_ time: Duration) -> String { "\(Int(time / .microseconds(1))) µs" }
}
