import CountersignClient
import CountersignSchemes
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
            // Where the row has no sessions, a scheme that has gets one that is made up.
            let craft = stage.craft(for: scheme)
            let weaker =
                craft.transfer(order, token: token, key: stage.appKey)
                ?? craft.transfer(order, token: WeakerForm.madeUp(victim), key: stage.appKey)
            guard let weaker else { throw StageFault("no transfer could be signed as \(scheme.label)") }
            requests.append(("the app's key under the older scheme \(scheme.label)", weaker))
            guard scheme == .formMD5, token == nil else { continue }
            let form = RawRequest.transfer(form: order, namingThePayer: order.payer)
            let bare = form.signed(
                with: FormMD5(), as: stage.appKey.id, stage.appKey.secret, at: stage.forgery.destination)
            guard let bare else { throw StageFault("no transfer could be signed as form-md5 without a token") }
            requests.append(("the app's key under form-md5, the user in a parameter and no token", bare))
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
        for own in stage.craft.logins(name: victim.name, password: password, key: stage.appKey) {
            guard let get = own.asGET else { continue }
            logins.append(("the app's login as a GET, which every log on the way keeps", get))
        }
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

    /// Of no session, for the victim.
    private static func madeUp(_ victim: any Victim) -> CapturedToken {
        CapturedToken(token: "b_" + String(repeating: "A", count: 43), userID: victim.name)
    }

    /// The token of a session of the victim's; nil where the scheme has none.
    private static func session(of victim: any Victim, _ stage: Stage) async throws -> CapturedToken? {
        guard stage.row.hasPasswords else { return nil }
        if try await victim.memory()?.login != nil { return try await stage.tokens(of: victim).first }
        let password = victim.password ?? ""
        // What some rungs send holds for a minute, and the server's minute may be another one.
        for login in stage.craft.logins(name: victim.name, password: password, key: stage.appKey) {
            if let token = stage.craft.token(from: try await stage.network.send(login)) { return token }
        }
        throw StageFault("\(stage.row.name): no session of \(victim.name)'s, whose token weaker requests could bear")
    }
}
