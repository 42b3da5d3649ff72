import CountersignSchemes

/// What the app's key signs for somebody who has no session of the victim's.
struct KeyAlone {
    let stage: Stage
    let victim: any Victim

    /// Transfers of the victim's money: with no token, an empty one, one that is made up, and one of the attacker's own session. Throws
    /// where none can be written, or where the attacker cannot sign in as himself.
    func requests() async throws -> [RawRequest] {
        let order = stage.order(from: victim)
        let user = String(victim.name.filter(\.isNumber))
        let none = stage.craft.transfer(order, token: nil, key: stage.appKey)
        guard stage.row.hasPasswords else { return try some([none]) }
        let own = try await ownToken(numbering: user)
        var requests = [none]
        for token in ["", "deadbeefdeadbeefdeadbeefdeadbeef", own.token] {
            let claimed = CapturedToken(token: token, userID: user)
            requests.append(stage.craft.transfer(order, token: claimed, key: stage.appKey))
            requests.append(messageSigned(order, bearing: token))
        }
        requests.append(messageSigned(order, bearing: nil))
        requests.append(withoutToken(order, user))
        return try some(requests)
    }

    private func some(_ requests: [RawRequest?]) throws -> [RawRequest] {
        let found = requests.compactMap(\.self)
        guard !found.isEmpty else { throw StageFault("\(stage.row.name): nothing can be signed with the app's key") }
        return found
    }

    /// Throws where the scheme's users are not numbered as the lab numbers them: then the victim's number is not known.
    private func ownToken(numbering user: String) async throws -> CapturedToken {
        let own = try await stage.newVictim()
        if let password = own.password {
            for login in stage.craft.logins(name: own.name, password: password, key: stage.appKey) {
                guard let token = stage.craft.token(from: try await stage.network.send(login)) else { continue }
                guard token.userID.isEmpty || token.userID == own.name.filter(\.isNumber) else {
                    throw StageFault("\(stage.row.name): \(own.name) is user \(token.userID) there")
                }
                return token
            }
        }
        try await own.signIn()
        guard let token = try await stage.tokens(of: own).first else {
            throw StageFault("\(stage.row.name): the attacker cannot sign in as himself")
        }
        return token
    }

    /// form-md5's parameters but for the token. Nil in rows that sign otherwise.
    private func withoutToken(_ order: Order, _ user: String) -> RawRequest? {
        switch stage.row.scheme {
        case .countersign, .messageSignaturesWithPassword, .apiKey, .token, .openRoute: return nil
        case .formMD5, .ladder, .tokens:
            var request = RawRequest.transfer(form: order, namingThePayer: order.payer)
            request.parameters.pairs.append(.init("userId", user))
            return request.signed(
                with: FormMD5(), as: stage.appKey.id, stage.appKey.secret, at: stage.forgery.destination)
        }
    }

    /// By the release, with the victim's name wherever a bank may look for it. Nil in rows that sign otherwise.
    private func messageSigned(_ order: Order, bearing token: String?) -> RawRequest? {
        switch stage.row.scheme {
        case .formMD5, .ladder, .tokens, .token, .openRoute, .apiKey: return nil
        case .countersign, .messageSignaturesWithPassword:
            var request = RawRequest.transfer(json: order, namingThePayer: order.payer)
            request.fields["Countersign-Account"] = order.payer
            if let token { request.fields["Authorization"] = "Bearer \(token)" }
            return request.signed(
                with: MessageSignatures(), as: stage.appKey.id, stage.appKey.secret, at: stage.forgery.destination)
        }
    }
}
