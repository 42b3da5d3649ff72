import CountersignClient
import CountersignWire

/// The victim's call as somebody makes it who has less than the app has: by an older login, another scheme, no signature. Each is done with
/// all that it takes, so that only the server's word stands in its way.
struct WeakerForm: Sendable {
    /// What is weaker about it.
    let sentence: String
    private let carryOut: @Sendable (Stage) async throws -> Bool

    /// Does it: whether the thief has more money then.
    func isTaken(_ stage: Stage) async throws -> Bool { try await carryOut(stage) }

    /// All that are weaker than the row's own.
    static func all(_ victim: any Victim, _ stage: Stage) async throws -> [WeakerForm] {
        let order = stage.order(from: victim)
        let logins = olderLogins(victim, order, stage)
        guard stage.row.signsRequests else { return logins }
        let token = try await session(of: victim, stage)
        var requests: [(String, RawRequest)] = []
        for scheme in stage.row.scheme.weakerSignatures {
            guard let request = stage.craft(for: scheme).transfer(order, token: token, key: stage.appKey) else {
                continue
            }
            requests.append(("the app's key under the older scheme \(scheme.label)", request))
        }
        if let signed = stage.craft.transfer(order, token: token, key: stage.appKey) { requests += signed.weakened }
        if let token {
            let bare = [
                RawRequest.transfer(form: order, namingThePayer: nil), .transfer(json: order, namingThePayer: nil),
            ]
            requests += bare.map { ("the session's token alone, without a signature", $0.bearing(token)) }
        }
        return logins + requests.map { WeakerForm($0, $1) }
    }

    private init(_ sentence: String, _ carryOut: @escaping @Sendable (Stage) async throws -> Bool) {
        self.sentence = sentence
        self.carryOut = carryOut
    }

    private init(_ sentence: String, _ request: RawRequest) {
        self.init(sentence) { stage in try await stage.brings(request, noting: "pays himself by \(sentence)") }
    }

    /// With the account's right password: as rungs below the row's own send it, and the row's own login as a GET.
    private static func olderLogins(_ victim: any Victim, _ order: Order, _ stage: Stage) -> [WeakerForm] {
        guard let password = victim.password else { return [] }
        var logins: [(String, RawRequest)] = []
        for rung in stage.row.scheme.weakerRungs {
            let older = stage.craft(for: .ladder(rung)).login(name: victim.name, password: password, key: stage.appKey)
            if let older { logins.append(("the login of older apps (\(rung.rawValue))", older)) }
        }
        let own = stage.craft.login(name: victim.name, password: password, key: stage.appKey)
        if let get = own?.asGET { logins.append(("the app's login as a GET, which every log on the way keeps", get)) }
        return logins.map { sentence, login in
            WeakerForm(sentence) { stage in
                let response = try await stage.attack("signs in by \(sentence)", login)
                guard let token = stage.craft.token(from: response) ?? response.loginsToken(),
                    let transfer = stage.craft.transfer(order, token: token, key: stage.appKey)
                else { return false }
                return try await stage.brings(transfer, noting: "pays himself with the session")
            }
        }
    }

    /// The token of a session of the victim's; nil where the scheme has none.
    private static func session(of victim: any Victim, _ stage: Stage) async throws -> CapturedToken? {
        let memory = try await victim.memory()
        if case .device(let session)? = memory?.login?.session {
            return CapturedToken(token: session.token.description)
        }
        guard let password = victim.password,
            let login = stage.craft.login(name: victim.name, password: password, key: stage.appKey)
        else { return nil }
        return stage.craft.token(from: try await stage.network.send(login))
    }
}
