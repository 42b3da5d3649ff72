/// Traffic is recorded today; the server's key leaks in a year, from a backup or an old disk. With forward secrecy it opens nothing.
package struct LeakedTLSKey: Attack {
    package let name: AttackName = "leaked-tls-key"
    package let column = Column.leakedTLSKey
    package let sentence =
        "Records the encrypted traffic, gets the server's TLS key later, decrypts, and uses the token that he reads."

    package init() {}

    package func exemption(of row: RowProfile) -> String? {
        row.transport == .plain ? "there is no TLS, and so no key of it" : nil
    }

    package func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.newVictim()
        let tap = stage.network.listen()
        stage.note(.victim, "signs in and pays")
        try await stage.seeThatItWorks(victim)
        let recording = tap.stop()
        guard !recording.conversations.isEmpty else { throw StageFault("nothing was recorded while the victim paid") }
        stage.note(.attacker, "records what passes", showing: recording.shown)
        guard let pem = stage.server.tlsKey else { throw StageFault("the server has no TLS key that could leak") }
        stage.note(.attacker, "gets the key of the server's certificate, later")
        let key = try LeakedKey(pem: pem)
        var reasons: Set<String> = []
        var isTried = false
        var opened: [Conversation] = []
        for result in key.read(recording) {
            switch result {
            case .success(let conversation): opened.append(conversation)
            case .failure(let problem):
                if case .needsEphemeralKey = problem { isTried = true }
                reasons.insert("\(problem)")
            }
        }
        if let how = try await gain(by: opened, from: victim, on: stage) {
            return .succeeded("the key decrypts what was recorded: \(how)")
        }
        let why = reasons.sorted().joined(separator: "; ")
        guard isTried else { throw StageFault("the key was tried on nothing: \(why)") }
        stage.note(.attacker, "reads nothing: \(why)")
        return .failed("the key opens nothing of \(recording.conversations.count) recorded connections: \(why)")
    }
    /// To hide what is said is what TLS is for: to read it is enough, whether or not it signs anybody in. In words; nil where nothing was read.
    private func gain(
        by opened: [Conversation], from victim: any Victim, on stage: Stage
    ) async throws -> String? {
        let read = opened.filter { !$0.client.isEmpty || !$0.server.isEmpty }
        guard !read.isEmpty else { return nil }
        stage.note(.attacker, "decrypts", showing: Recording(read).shown)
        let exchanges = read.flatMap(\.exchanges)
        if let how = try await stage.robbed(victim, by: exchanges) { return how }
        guard let first = exchanges.first?.request else { return "bytes of \(read.count) connections" }
        return "\(exchanges.count) requests can be read, the first of them \(first.method) \(first.target)"
    }
}
