import CountersignSchemes

/// A key that is in the app is known to everyone that has the app.
struct AppKeyAttack: Attack {
    let name: AttackName = "app-key"
    let column = Column.appKey
    let sentence =
        "Takes the key, or salt, out of the app's binary, listens where that can be done, and moves a user's "
        + "money."

    func exemption(of row: RowProfile) -> String? {
        row.hasAppKey ? nil : "no key or salt lies in the app"
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        try await stage.requireValidForgery()
        let tap = stage.network.listen()
        let victim = try await stage.signedInVictim()
        let recording = tap.stop()
        guard !recording.connections.isEmpty else {
            throw LabError("\(stage.row.name): the victim acted, and nothing passed")
        }
        stage.note(
            .attacker, action: "takes `\(stage.appKey.id)` and its secret out of the app's binary; listens",
            showing: recording.shown)
        let requests = try await AppKeyForgery(stage: stage, victim: victim).requests()
        for request in requests {
            // A transfer from the attacker's own account is no theft: only the victim's balance counts.
            let before = try stage.bank.balance(of: victim.name)
            _ = try await stage.paysThief(
                request, noting: "signs a transfer of the victim's money with the app's key")
            if try stage.bank.balance(of: victim.name) < before {
                return .succeeded("the app's key suffices to act as any of its users")
            }
        }
        for exchange in recording.exchanges {
            if let found = try await use(exchange, of: victim, on: stage) { return .succeeded(found) }
        }
        return .failed(
            recording.exchanges.isEmpty
                ? "\(requests.count) transfers signed with the key alone are refused, and nothing that "
                    + "passed can be read"
                : "neither the key alone nor with what passed in the clear opens anything of a user's")
    }

    /// Uses the key together with the login or token of a request that was read on the way.
    private func use(_ exchange: RawExchange, of victim: any Victim, on stage: Stage) async throws -> String?
    {
        if let login = stage.attackKit.login(in: exchange) {
            let found = WordListSearch.run(over: stage.words.all) { word in
                stage.attackKit.value(of: word, name: login.name, key: stage.appKey) == login.value
            }
            let logins =
                found.word.map { stage.attackKit.logins(name: login.name, password: $0, key: stage.appKey) }
                ?? []
            for again in logins {
                if case .paid = try await stage.signIn(with: again, as: victim) {
                    return """
                        with it the login that passed can be tested against a word list \
                        (\(found.shownRate)); the password signs in
                        """
                }
            }
        }
        guard let token = stage.attackKit.token(in: exchange) else { return nil }
        for request in stage.transfers(bearing: token, of: victim) {
            if try await stage.paysThief(request) {
                return "with it and the token that passed, requests are signed in the victim's name"
            }
        }
        return nil
    }
}

/// Requests that are signed with the app's key, without a session of the victim's.
struct AppKeyForgery {
    let stage: Stage
    let victim: any Victim

    /// Transfers of the victim's money: without a token, with an empty one, with an invented one, and with
    /// the token of the attacker's own session. Throws where no request can be signed, or where the attacker
    /// cannot sign in.
    func requests() async throws -> [RawRequest] {
        let order = stage.theftOrder(from: victim)
        let user = String(victim.name.filter(\.isNumber))
        let none = stage.attackKit.transfer(order, token: nil, key: stage.appKey)
        guard stage.row.hasPasswords else { return try some([none]) }
        let own = try await ownToken(numbering: user)
        var requests = [none]
        for token in ["", "deadbeefdeadbeefdeadbeefdeadbeef", own.token] {
            let claimed = CapturedToken(token: token, userID: user)
            requests.append(stage.attackKit.transfer(order, token: claimed, key: stage.appKey))
            requests.append(messageSigned(order, bearing: token))
        }
        requests.append(messageSigned(order, bearing: nil))
        requests.append(tokenlessTransfer(order, user: user))
        return try some(requests)
    }

    private func some(_ requests: [RawRequest?]) throws -> [RawRequest] {
        let found = requests.compactMap(\.self)
        guard !found.isEmpty else {
            throw LabError("\(stage.row.name): nothing can be signed with the app's key")
        }
        return found
    }

    /// The token of a session of the attacker's own. Throws where the scheme's user number is not the number
    /// in the lab's account name: then the victim's user number is unknown.
    private func ownToken(numbering user: String) async throws -> CapturedToken {
        let own = try await stage.newVictim()
        if let password = own.password {
            for login in stage.attackKit.logins(name: own.name, password: password, key: stage.appKey) {
                guard let token = stage.attackKit.token(from: try await stage.network.send(login)) else {
                    continue
                }
                guard token.userID.isEmpty || token.userID == own.name.filter(\.isNumber) else {
                    throw LabError("\(stage.row.name): \(own.name) is user \(token.userID) there")
                }
                return token
            }
        }
        try await own.signIn()
        guard let token = try await stage.tokens(of: own).first else {
            throw LabError("\(stage.row.name): the attacker cannot sign in as himself")
        }
        return token
    }

    /// A transfer with form-md5's parameters except the token. Nil in rows that sign otherwise.
    private func tokenlessTransfer(_ order: TransferOrder, user: String) -> RawRequest? {
        switch stage.row.scheme {
        case .countersign, .messageSignaturesWithPassword, .apiKey, .token, .openRoute: return nil
        case .formMD5, .ladder, .tokens:
            var request = RawRequest.transfer(form: order, namingThePayer: order.payer)
            request.parameters.pairs.append(.init(name: "userId", value: user))
            return request.signed(
                with: FormMD5(), as: stage.appKey.id, secret: stage.appKey.secret, at: stage.forgery.context)
        }
    }

    /// A transfer that the release signs, with the victim's name in the body and in `Countersign-Account`,
    /// where a bank may look for it. Nil in rows that sign otherwise.
    private func messageSigned(_ order: TransferOrder, bearing token: String?) -> RawRequest? {
        switch stage.row.scheme {
        case .formMD5, .ladder, .tokens, .token, .openRoute, .apiKey: return nil
        case .countersign, .messageSignaturesWithPassword:
            var request = RawRequest.transfer(json: order, namingThePayer: order.payer)
            request.fields["Countersign-Account"] = "name:\(order.payer)"
            if let token { request.fields["Authorization"] = "Bearer \(token)" }
            return request.signed(
                with: MessageSignatures(), as: stage.appKey.id, secret: stage.appKey.secret,
                at: stage.forgery.context)
        }
    }
}
