/// A server that looks for the name first, and computes a slow hash only where it finds one, tells by its haste.
struct EnumerationTime: Attack {
    let name: AttackName = "enumeration-time"
    let column = Column.enumeration
    let sentence =
        "Signs in with a wrong password under twelve names, and tells by how long it takes which of them have an account."

    /// Of each name. Strangers have ten guesses at an account.
    private static let samples = 4

    func exemption(of row: RowProfile) -> String? { row.hasPasswords ? nil : "nobody signs in" }

    /// Twice, with other names each time: by chance all are right once in some ten million runs.
    func run(on stage: Stage) async throws -> Outcome {
        try await stage.proveForgery()
        var told: [String] = []
        for round in 1...2 {
            let census = try await Census(of: 12, on: stage)
            let times = try await times(of: census.names, on: stage)
            let (suspects, gap) = EnumerationTime.slower(times)
            stage.note(
                .attacker, "round \(round): takes the slower ones for members: \(census.score(suspects))",
                showing: times.sorted { $0.value < $1.value }.map { "\($0.key) \(shown($0.value))" }
                    .joined(separator: "\n"))
            guard census.isRight(suspects) || census.isRight(Set(census.names).subtracting(suspects)) else {
                return .failed("the times do not tell: by the clearest division of them, \(census.score(suspects))")
            }
            told.append(shown(gap))
        }
        return .succeeded(
            "who has an account was told right of 24 names by the time alone: a difference of \(told.joined(separator: ", "))"
        )
    }

    /// The shortest of a few answers for each name, asked in random order: what else the machine does makes some longer, and none shorter.
    private func times(of names: [String], on stage: Stage) async throws -> [String: Duration] {
        let probe = LoginProbe(stage: stage)
        let warmUp = try probe.request("\(names[0])x")
        var shortest: [String: Duration] = [:]
        for turn in 0..<EnumerationTime.samples {
            let order = names.shuffled()
            var requests = turn == 0 ? [warmUp, warmUp] : [warmUp]
            let unasked = requests.count
            for name in order { requests.append(try probe.request(name)) }
            let answers = try await stage.network.timed(requests).dropFirst(unasked)
            for (name, answer) in zip(order, answers) {
                guard answer.response.status != 429 else {
                    throw StageFault("\(stage.row.name): too many attempts, before \(name) was asked about")
                }
                shortest[name] = min(shortest[name] ?? answer.taken, answer.taken)
            }
        }
        return shortest
    }

    /// The division into two that leaves least difference within its halves, on a scale of factors: those above it, and how far they are
    /// apart. Source: N. Otsu, "A threshold selection method from gray-level histograms", 1979.
    static func slower(_ times: [String: Duration]) -> (names: Set<String>, gap: Duration) {
        let sorted = times.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
        let scale = sorted.map { Logarithm.of($0.value / .microseconds(1)) }
        var best = (between: -1.0, cut: 1)
        for cut in 1..<max(2, sorted.count) {
            let (low, high) = (scale[..<cut], scale[cut...])
            let difference = high.reduce(0, +) / Double(max(1, high.count)) - low.reduce(0, +) / Double(low.count)
            let between = Double(low.count * high.count) * difference * difference
            if between > best.between { best = (between, cut) }
        }
        let gap = sorted.count > best.cut ? sorted[best.cut].value - sorted[best.cut - 1].value : .zero
        return (Set(sorted[best.cut...].map(\.key)), gap)
    }

    private func shown(_ time: Duration) -> String { "\(Int(time / .microseconds(1))) µs" }
}
