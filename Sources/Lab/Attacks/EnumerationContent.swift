/// Who can find out which names have accounts knows where to begin.
struct EnumerationContent: Attack {
    let name: AttackName = "enumeration-content"
    let column = Column.enumeration
    let sentence =
        "Signs in with a wrong password under twelve names, and tells by what is answered which of them have an account."

    func exemption(of row: RowProfile) -> String? { row.hasPasswords ? nil : "nobody signs in" }

    func run(on stage: Stage) async throws -> Outcome {
        try await stage.seeThatItWorks(stage.newVictim())
        try await stage.proveForgery()
        let census = try await Census(of: 12, on: stage)
        let probe = LoginProbe(stage: stage)
        // Twice each: what differs between two answers about one name is chance.
        let own = [try await features(of: census.own, probe), try await features(of: census.own, probe)]
        let nobody = [try await features(of: census.nobody, probe), try await features(of: census.nobody, probe)]
        let signs = own[0].filter { sign, value in
            own[1][sign] == value && nobody[0][sign] == nobody[1][sign] && nobody[0][sign] != value
        }
        stage.note(
            .attacker,
            "asks about his own name and one that is nobody's: \(signs.count) of \(own[0].count) features differ",
            showing: signs.isEmpty ? nil : signs.map { "\($0.key): \($0.value)" }.sorted().joined(separator: "\n"))

        var answers: [String: [String: String]] = [:]
        for name in census.names { answers[name] = try await features(of: name, probe) }
        for (sign, value) in signs.sorted(by: { $0.key < $1.key }) {
            let suspects = Set(census.names.filter { answers[$0]?[sign] == value })
            stage.note(.attacker, "goes by `\(sign)`: \(census.score(suspects))")
            if census.isRight(suspects) {
                return .succeeded("`\(sign)` of the answer tells who has an account: \(census.score(suspects))")
            }
        }
        return .failed("the answers are the same but for what is random in each: \(own[0].count) features compared")
    }

    /// Everything about the answers to one login that may tell something, by what it is: of every step the status, each field with its
    /// length, the body, its length, and each member of it.
    private func features(of name: String, _ probe: LoginProbe) async throws -> [String: String] {
        let first = try await probe.stage.network.send(probe.request(name))
        guard !first.isLimit else {
            throw StageFault("\(probe.stage.row.name): too many attempts, before \(name) was asked about")
        }
        probe.stage.note(.server, "answers to a wrong password of \(name)", showing: first.shown)
        var found = AnswerFeatures(first, step: 1).values
        if let next = probe.request(after: first) {
            let second = try await probe.stage.network.send(next)
            found.merge(AnswerFeatures(second, step: 2).values) { one, _ in one }
        }
        return found
    }
}
