import CountersignClient
import CountersignSeal
import CountersignWire

extension Stage {
    /// A victim that is signed in and has read the balance. Throws where that fails without an attack.
    func signedInVictim() async throws -> any Victim {
        let victim = try await newVictim()
        do {
            try await victim.signIn()
            let seen = try await victim.balance()
            guard seen == Bank.openingBalance else {
                throw LabError("\(row.name): \(victim.name) sees \(seen) on a new account")
            }
        } catch let problem as VictimError {
            throw LabError(
                "\(row.name): \(victim.name) cannot use the app without an attack: \(problem)")
        }
        note(
            .victim, action: row.hasPasswords ? "signs in, and looks at the balance" : "looks at the balance")
        return victim
    }

    /// An order that moves the victim's money to the thief.
    func theftOrder(from victim: any Victim) -> TransferOrder {
        TransferOrder(payer: victim.name, payee: thief, amount: Stage.theftAmount)
    }

    /// The amount of one theft: small enough for many thefts from one account.
    static let theftAmount = 7

    /// Sends the request, and returns whether the thief's balance grew. Records the step where it grew, or
    /// where `did` is given.
    // Inlining this function into loops crashes the compiler in optimised builds (6.3.1).
    @inline(never)
    func paysThief(_ request: RawRequest, noting did: String? = nil) async throws -> Bool {
        let before = try bank.balance(of: thief)
        let response = try await network.send(request)
        let gain = try bank.balance(of: thief) - before
        if let did = did ?? (gain > 0 ? "orders a transfer in the victim's name" : nil) {
            note(.attacker, action: did, showing: request.shown)
            note(
                .server, action: gain > 0 ? "moves \(gain) to the thief" : "answers", showing: response.shown)
        }
        return gain > 0
    }

    /// Signs in with `login`, and orders a transfer with the token of the response. The result says whether
    /// the login was refused, and whether money moved.
    @inline(never)
    func signIn(with login: RawRequest, as victim: any Victim) async throws -> SignInOutcome {
        let response = try await network.send(login)
        guard let token = attackKit.token(from: response) else { return .refused(response) }
        note(.attacker, action: "signs in as the victim", showing: login.shown)
        note(.server, action: "accepts the login", showing: response.shown)
        guard let transfer = attackKit.transfer(theftOrder(from: victim), token: token, key: appKey) else {
            throw LabError("\(row.name): expected a token to be enough for a transfer")
        }
        return try await paysThief(transfer) ? .paid : .signedIn
    }
}

/// The result of a login with stolen data.
enum SignInOutcome {
    case refused(RawResponse)
    /// The server returned a token, and no money moved.
    case signedIn
    case paid
}

/// Uses logins and tokens that were read on the wire.
extension Stage {
    /// Moves the victim's money to the thief with logins and tokens of `exchanges`. Describes the theft; nil
    /// where they contain nothing useful. `key` is given where the attacker has the app's key, too.
    package func stealMoney(from victim: any Victim, using exchanges: [RawExchange], key: AppKey? = nil)
        async throws -> String?
    {
        var tried: Set<String> = []
        for exchange in exchanges {
            guard let login = attackKit.login(in: exchange), tried.insert(login.value).inserted else {
                continue
            }
            guard let request = attackKit.login(login, key: key) else { continue }
            if let loot = try await moveMoney(from: victim, signingInWith: request, key: key) { return loot }
        }
        for exchange in exchanges {
            guard let token = attackKit.token(in: exchange), tried.insert(token.token).inserted else {
                continue
            }
            if let loot = try await moveMoney(from: victim, with: token, key: key) {
                return "a token that was read \(loot)"
            }
        }
        return nil
    }

    /// The same with whole logins that are sent again unchanged. To be tried last: a login can end the
    /// session that was recorded.
    package func stealMoney(from victim: any Victim, replayingLoginsOf exchanges: [RawExchange]) async throws
        -> String?
    {
        for exchange in exchanges where attackKit.login(in: exchange) != nil {
            if let loot = try await moveMoney(from: victim, signingInWith: exchange.request, key: nil) {
                return loot
            }
        }
        return nil
    }

    private func moveMoney(
        from victim: any Victim, signingInWith request: RawRequest, key: AppKey?
    ) async throws -> String? {
        let response = try await attack("signs in with what was read of a login", request: request)
        guard let token = attackKit.token(from: response) else { return nil }
        return try await moveMoney(from: victim, with: token, key: key).map { "a login that was read \($0)" }
    }

    /// Moves money in the victim's name. Describes the theft; nil where no money moved.
    package func moveMoney(
        from victim: any Victim, with token: CapturedToken?, key: AppKey? = nil
    ) async throws -> String? {
        let order = TransferOrder(payer: victim.name, payee: thief, amount: TamperScenario.stolenAmount)
        guard let request = attackKit.transfer(order, token: token, key: key) else { return nil }
        let before = try thiefBalance()
        _ = try await attack("orders a transfer in the victim's name", request: request)
        let stolen = try thiefBalance() - before
        return stolen > 0 ? "moved \(stolen) of the victim's money to the thief" : nil
    }

    /// Sends recorded transfers again unchanged. Describes the gain; nil where the thief gained nothing.
    package func replayTransfers(in exchanges: [RawExchange]) async throws -> String? {
        for exchange in exchanges where exchange.request.isTransfer {
            let before = try thiefBalance()
            _ = try await attack("sends the same request again", request: exchange.request)
            let stolen = try thiefBalance() - before
            if stolen > 0 { return "the same request, sent again, paid the thief another \(stolen)" }
        }
        return nil
    }
}

extension Stage {
    /// The token of the victim's app: from its memory, or from the folder of an app that keeps it there
    /// unencrypted.
    func tokens(of victim: any Victim) async throws -> [CapturedToken] {
        if let login = try await victim.stateInMemory()?.login {
            switch login.session {
            case .device(let session): return [CapturedToken(token: session.token.description)]
            case .bearer(let session):
                return [CapturedToken(token: session.token.withExposedBytes { $0.text })]
            }
        }
        let loot = try StolenData(backupOf: victim.folder, into: "\(folder)/memory-of-\(victim.name)")
        let tokens = loot.records.flatMap(\.tokens).filter { $0.token.utf8.count >= 16 }
        guard !tokens.isEmpty else {
            throw LabError("\(row.name): \(victim.name) is signed in without a token")
        }
        return tokens
    }

    /// Every way to order a transfer with a token and the contents of the app's binary, without the keys of
    /// the victim's device.
    func transfers(bearing captured: CapturedToken, of victim: any Victim) -> [RawRequest] {
        let (order, token) = (theftOrder(from: victim), captured.token)
        let plain = attackKit.transfer(order, token: captured, key: appKey)
        guard row.isOurs else { return [plain].compactMap(\.self) }
        let bearer = ("Authorization", "Bearer \(token)")
        var requests = [plain]
        // With the release's key as the session's, with a key of zeros, and with the token as the key.
        for key in [
            appKey.secret, Stage.secret([UInt8](repeating: 0, count: 32)), Stage.secret(Array(token.utf8)),
        ] {
            requests.append(forgery.transfer(order, under: token, signedWith: key))
        }
        // As a bearer token, with the release's own signature and without one.
        requests.append(
            forgery.transfer(order, under: appKey.id, signedWith: appKey.secret, adding: [bearer]))
        requests.append(unsigned(order, bearing: token))
        return requests.compactMap(\.self)
    }

    private func unsigned(_ order: TransferOrder, bearing token: String) -> RawRequest {
        let body: JSONValue = ["to": .string(order.payee), "amount": .integer(Int64(order.amount))]
        var request = RawRequest(method: "POST", target: "/transfer", body: Array(body.text.utf8))
        request.fields["Authorization"] = "Bearer \(token)"
        request.fields["Content-Type"] = "application/json"
        return request
    }

    private static func secret(_ bytes: [UInt8]) -> Secret { Secret(copying: bytes.span) }
}

extension StolenData.Record {
    /// Every value that may be a token, with each number of the record that may be its user's.
    var tokens: [CapturedToken] {
        let users = numbers.isEmpty ? [""] : numbers
        return texts.flatMap { text in users.map { CapturedToken(token: text, userID: $0) } }
    }
}
