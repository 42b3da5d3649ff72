import CountersignWire

/// The victim's call as somebody makes it who has less than the app has: by an older login, another scheme, no signature. Each is done with
/// all that it takes, so that only the server's word stands in its way.
struct WeakerForm: Sendable {
    /// What is weaker about it.
    let sentence: String
    private let steps: @Sendable (Stage) async throws -> Void

    /// Does it; whether it was taken shows at the bank.
    func carryOut(_ stage: Stage) async throws { try await steps(stage) }

    /// All that are weaker than the row's own.
    static func all(_ victim: any Victim, _ stage: Stage) async throws -> [WeakerForm] {
        let order = Order(payer: victim.name, payee: stage.thief, amount: 100)
        let token = try await session(of: victim, stage)
        var forms = olderLogins(victim, order, stage)
        for scheme in stage.row.scheme.weakerSignatures {
            let craft = CraftCatalogue.craft(for: scheme)
            guard let request = craft.transfer(order, token: token, key: stage.appKey) else { continue }
            forms.append(WeakerForm("the app's key under an older scheme (\(scheme.label))", request))
        }
        guard stage.row.bearsSignatures else { return forms }
        if let signed = stage.craft.transfer(order, token: token, key: stage.appKey) {
            forms += signed.weakened.map { WeakerForm($0, $1) }
        }
        if let token {
            for (type, body) in order.bodies {
                let fields: RawFields = [("Authorization", "Bearer \(token.token)"), ("Content-Type", type)]
                let request = RawRequest("POST", "/transfer", fields: fields, body: Array(body.utf8))
                forms.append(WeakerForm("the session's token alone, without a signature", request))
            }
        }
        return forms
    }

    private init(_ sentence: String, _ steps: @escaping @Sendable (Stage) async throws -> Void) {
        self.sentence = sentence
        self.steps = steps
    }

    private init(_ sentence: String, _ request: RawRequest) {
        self.init(sentence) { stage in _ = try await stage.attack("pays himself by \(sentence)", request) }
    }

    /// The account's right password, as rungs below the row's own send it, and the row's own login in the query of a GET.
    private static func olderLogins(_ victim: any Victim, _ order: Order, _ stage: Stage) -> [WeakerForm] {
        guard let password = victim.password else { return [] }
        var logins: [(String, RawRequest)] = []
        for rung in stage.row.scheme.weakerRungs {
            let craft = CraftCatalogue.craft(for: .ladder(rung))
            guard let request = craft.login(name: victim.name, password: password, key: stage.appKey) else { continue }
            logins.append(("the login of older apps (\(rung.rawValue))", request))
        }
        if let own = stage.craft.login(name: victim.name, password: password, key: stage.appKey), let get = own.asGET {
            logins.append(("the same login as a GET, where every log on the way has it", get))
        }
        return logins.map { sentence, request in
            WeakerForm(sentence) { stage in
                let response = try await stage.attack("signs in by \(sentence)", request)
                guard let token = stage.craft.token(from: response) ?? LadderTokens.token(from: response),
                    let transfer = stage.craft.transfer(order, token: token, key: stage.appKey)
                else { return }
                _ = try await stage.attack("pays himself with the session", transfer)
            }
        }
    }

    /// The token of a session of the victim's; nil where the scheme has none.
    private static func session(of victim: any Victim, _ stage: Stage) async throws -> CapturedToken? {
        if let memory = try await victim.memory(), let token = memory.login?.token {
            return CapturedToken(token: token.description)
        }
        guard let password = victim.password,
            let login = stage.craft.login(name: victim.name, password: password, key: stage.appKey)
        else { return nil }
        return stage.craft.token(from: try await stage.network.send(login))
    }
}
