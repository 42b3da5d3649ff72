/// Decrypts recorded traffic with the server's key, which leaks later from a backup or an old disk. With
/// forward secrecy the key decrypts nothing.
package struct LeakedTLSKeyAttack: Attack {
    package let name: AttackName = "leaked-tls-key"
    package let column = Column.leakedTLSKey
    package let sentence =
        "Records the encrypted traffic, gets the server's TLS key later, decrypts, and uses the token in "
        + "it."

    package init() {}

    package func exemption(of row: RowProfile) -> String? {
        row.transport == .plain ? "there is no TLS, and so no key of it" : nil
    }

    package func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.newVictim()
        let tap = stage.network.listen()
        stage.note(.victim, action: "signs in and pays")
        try await stage.requireSignInAndPayment(by: victim)
        let recording = tap.stop()
        guard !recording.connections.isEmpty else {
            throw LabError("nothing was recorded while the victim paid")
        }
        stage.note(.attacker, action: "records what passes", showing: recording.shown)
        guard let pem = stage.server.tlsKey else {
            throw LabError("the server has no TLS key that could leak")
        }
        stage.note(.attacker, action: "gets the key of the server's certificate, later")
        let key = try TLSDecryptor(pem: pem)
        var reasons: Set<String> = []
        var isTried = false
        var opened: [RecordedConnection] = []
        for result in key.decrypt(recording) {
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
        guard isTried else { throw LabError("the key was tried on nothing: \(why)") }
        stage.note(.attacker, action: "reads nothing: \(why)")
        return .failed("the key opens nothing of \(recording.connections.count) recorded connections: \(why)")
    }
    /// Reading the traffic counts as success, even where it contains no login: confidentiality is the purpose
    /// of TLS. Returns a description; nil where nothing was read.
    private func gain(
        by opened: [RecordedConnection], from victim: any Victim, on stage: Stage
    ) async throws -> String? {
        let read = opened.filter { !$0.client.isEmpty || !$0.server.isEmpty }
        guard !read.isEmpty else { return nil }
        stage.note(.attacker, action: "decrypts", showing: Recording(read).shown)
        let exchanges = read.flatMap(\.exchanges)
        if let how = try await stage.stealMoney(from: victim, using: exchanges) { return how }
        guard let first = exchanges.first?.request else { return "bytes of \(read.count) connections" }
        return "\(exchanges.count) requests can be read, the first of them \(first.method) \(first.target)"
    }
}
