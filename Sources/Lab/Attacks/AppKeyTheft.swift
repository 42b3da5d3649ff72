/// A key in an app is a key in the hands of everybody who has the app.
struct AppKeyTheft: Attack {
    let name: AttackName = "app-key"
    let column = Column.appKey
    let sentence =
        "Takes the key, or salt, out of the app's binary, listens where that can be done, and moves a user's money."

    func exemption(of row: RowProfile) -> String? {
        row.hasAppKey ? nil : "no key or salt lies in the app"
    }

    func run(on stage: Stage) async throws -> Outcome {
        try await stage.proveForgery()
        let tap = stage.network.listen()
        let victim = try await stage.signedInVictim()
        let recording = tap.stop()
        guard !recording.conversations.isEmpty else {
            throw StageFault("\(stage.row.name): the victim acted, and nothing passed")
        }
        stage.note(
            .attacker, "takes `\(stage.appKey.id)` and its secret out of the app's binary; listens",
            showing: recording.shown)
        let requests = try await KeyAlone(stage: stage, victim: victim).requests()
        for request in requests {
            // The attacker's own session may pay with his own money: only the victim's counts.
            let before = try stage.bank.balance(of: victim.name)
            _ = try await stage.brings(request, noting: "signs a transfer of the victim's money with the app's key")
            if try stage.bank.balance(of: victim.name) < before {
                return .succeeded("whoever has the app's key is taken for any of its users")
            }
        }
        for exchange in recording.exchanges {
            if let found = try await use(exchange, of: victim, on: stage) { return .succeeded(found) }
        }
        return .failed(
            recording.exchanges.isEmpty
                ? "\(requests.count) transfers signed with the key alone are refused, and nothing that passed can be read"
                : "neither the key alone nor with what passed in the clear opens anything of a user's")
    }

    /// The key together with what was read on the way.
    private func use(_ exchange: RawExchange, of victim: any Victim, on stage: Stage) async throws -> String? {
        if let login = stage.craft.login(in: exchange) {
            let found = Guessing.search(stage.words.all) { word in
                stage.craft.value(of: word, name: login.name, key: stage.appKey) == login.value
            }
            let logins = found.word.map { stage.craft.logins(name: login.name, password: $0, key: stage.appKey) } ?? []
            for again in logins {
                if case .paid = try await stage.signsIn(with: again, as: victim) {
                    return """
                        with it the login that passed can be tested against a word list (\(found.shownRate)); the password \
                        signs in
                        """
                }
            }
        }
        guard let token = stage.craft.token(in: exchange) else { return nil }
        for request in stage.withToken(token, of: victim) {
            if try await stage.brings(request) {
                return "with it and the token that passed, requests are signed in the victim's name"
            }
        }
        return nil
    }
}
