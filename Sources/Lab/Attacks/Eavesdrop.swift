/// Listening alone. What is asked is whether what passes lets somebody act: that it can be read where there is no TLS goes without saying,
/// and is said.
struct Eavesdrop: Attack {
    let name: AttackName = "eavesdrop"
    let column = Column.eavesdrop
    let sentence = """
        Listens while the victim signs in, looks at his balance and pays, then uses what was heard, a login, a \
        token, or a whole request, to move his money.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.newVictim()
        let listener = stage.network.tools.capture
        let tap = try await stage.network.listen(by: listener)
        stage.note(.attacker, "listens with \(listener)")
        do throws(VictimProblem) {
            try await victim.signIn()
            _ = try await victim.balance()
            try await victim.transfer(Tampering.meant, to: stage.thief)
        } catch {
            throw StageFault("\(victim.name), while somebody listens: \(error)")
        }
        let recording = tap.stop()
        guard !recording.conversations.isEmpty else { throw StageFault("the victim acted, and nothing passed") }
        stage.note(.victim, "signs in, looks at the balance and pays; what passes is", showing: recording.shown)
        return try await outcome(on: stage, victim, recording)
    }

    private func outcome(on stage: Stage, _ victim: any Victim, _ recording: Recording) async throws -> Outcome {
        let card = recording.contains(try stage.bank.secret(of: victim.name))
        let password = victim.password.map { recording.contains($0) } ?? false
        let read = [card ? "card number" : nil, password ? "password" : nil].compactMap { $0 }
        guard !recording.exchanges.isEmpty else {
            guard read.isEmpty else { return .succeeded("the \(read.joined(separator: " and ")) passed in the clear") }
            return .failed("nothing but TLS records passed; connections: \(recording.conversations.count)")
        }
        if let loot = try await stage.robbed(victim, by: recording.exchanges) { return .succeeded(loot) }
        if let loot = try await stage.movedAgain(by: recording.exchanges) { return .succeeded(loot) }
        if let loot = try await stage.robbed(victim, bySendingLoginsOf: recording.exchanges) { return .succeeded(loot) }
        // Whoever knows it needs nothing that passed: it signs in wherever the victim used it.
        if password { return .succeeded("the password can be read in what passed") }
        try await stage.requireService(to: victim)
        let said = card ? " (the card number can be read, for there is no TLS)" : ""
        return .failed(
            "\(recording.exchanges.count) requests were read, and nothing in them lets another act\(said)")
    }
}
