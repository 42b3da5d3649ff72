import CountersignClient
import CountersignSchemes
import CountersignWire

/// The victim's call in a weaker form than the app's: by an older login, another scheme, or without a
/// signature. Each has everything else that the form needs, so that only the server can refuse it.
struct WeakerForm: Sendable {
    /// What is weaker.
    let sentence: String
    private let carryOut: @Sendable (Stage) async throws -> Bool

    /// Carries out the form, and returns whether the thief gained money.
    func isAccepted(on stage: Stage) async throws -> Bool { try await carryOut(stage) }

    /// All forms that are weaker than the row's own.
    static func all(for victim: any Victim, on stage: Stage) async throws -> [WeakerForm] {
        let order = stage.theftOrder(from: victim)
        let logins = olderLogins(for: victim, order: order, on: stage)
        guard stage.row.signsRequests else { return logins }
        let token = try await session(of: victim, on: stage)
        var requests: [(String, RawRequest)] = []
        for scheme in stage.row.scheme.weakerSignatures {
            // In a row without sessions, a scheme that needs a token gets an invented one.
            let craft = stage.attackKit(for: scheme)
            let weaker =
                craft.transfer(order, token: token, key: stage.appKey)
                ?? craft.transfer(order, token: WeakerForm.madeUp(victim), key: stage.appKey)
            guard let weaker else { throw LabError("no transfer could be signed as \(scheme.label)") }
            requests.append(("the app's key under the older scheme \(scheme.label)", weaker))
            guard scheme == .formMD5, token == nil else { continue }
            let form = RawRequest.transfer(form: order, namingThePayer: order.payer)
            let bare = form.signed(
                with: FormMD5(), as: stage.appKey.id, secret: stage.appKey.secret, at: stage.forgery.context)
            guard let bare else { throw LabError("no transfer could be signed as form-md5 without a token") }
            requests.append(("the app's key under form-md5, the user in a parameter and no token", bare))
        }
        if let signed = stage.attackKit.transfer(order, token: token, key: stage.appKey) {
            requests += signed.weakenedVariants
        }
        if let token {
            let bare = [
                RawRequest.transfer(form: order, namingThePayer: nil),
                .transfer(json: order, namingThePayer: nil),
            ]
            requests += bare.map { ("the session's token alone, without a signature", $0.bearing(token)) }
        }
        return logins + requests.map { WeakerForm($0, request: $1) }
    }

    private init(_ sentence: String, carryOut: @escaping @Sendable (Stage) async throws -> Bool) {
        self.sentence = sentence
        self.carryOut = carryOut
    }

    private init(_ sentence: String, request: RawRequest) {
        self.init(sentence) { stage in
            try await stage.paysThief(request, noting: "pays himself by \(sentence)")
        }
    }

    /// Logins with the account's right password: those of the rungs below the row's own, and the row's own
    /// login as a GET.
    private static func olderLogins(for victim: any Victim, order: TransferOrder, on stage: Stage)
        -> [WeakerForm]
    {
        guard let password = victim.password else { return [] }
        var logins: [(String, RawRequest)] = []
        for rung in stage.row.scheme.weakerRungs {
            let older = stage.attackKit(for: .ladder(rung)).login(
                name: victim.name, password: password, key: stage.appKey)
            if let older { logins.append(("the login of older apps (\(rung.rawValue))", older)) }
        }
        for own in stage.attackKit.logins(name: victim.name, password: password, key: stage.appKey) {
            guard let get = own.asGET else { continue }
            logins.append(("the app's login as a GET, which every log on the way keeps", get))
        }
        return logins.map { sentence, login in
            WeakerForm(sentence) { stage in
                let response = try await stage.attack("signs in by \(sentence)", request: login)
                guard let token = stage.attackKit.token(from: response) ?? response.loginToken(),
                    let transfer = stage.attackKit.transfer(order, token: token, key: stage.appKey)
                else { return false }
                return try await stage.paysThief(transfer, noting: "pays himself with the session")
            }
        }
    }

    /// A token of no session, for the victim.
    private static func madeUp(_ victim: any Victim) -> CapturedToken {
        CapturedToken(token: "b_" + String(repeating: "A", count: 43), userID: victim.name)
    }

    /// The token of a session of the victim; nil where the scheme has no sessions.
    private static func session(of victim: any Victim, on stage: Stage) async throws -> CapturedToken? {
        guard stage.row.hasPasswords else { return nil }
        if try await victim.stateInMemory()?.login != nil { return try await stage.tokens(of: victim).first }
        let password = victim.password ?? ""
        // Some rungs' login values hold for one minute, and the server's clock may be in another minute.
        for login in stage.attackKit.logins(name: victim.name, password: password, key: stage.appKey) {
            if let token = stage.attackKit.token(from: try await stage.network.send(login)) { return token }
        }
        throw LabError(
            "\(stage.row.name): no session of \(victim.name)'s, whose token weaker requests could bear")
    }
}

extension RawRequest {
    /// The signed request with a weaker signature: without one, and with another algorithm or version named
    /// in it. Each with its description.
    var weakenedVariants: [(String, RawRequest)] {
        var found = [("the request without its signature", unsigned)]
        for (named, weaker) in RawRequest.weakerNames {
            var other = self
            other.target = target.replacing(named, with: weaker)
            for index in other.fields.lines.indices {
                let line = "\(fields.lines[index].name): \(fields.lines[index].value)"
                guard line.contains(named) else { continue }
                let parts = line.replacing(named, with: weaker).split(separator: ": ", maxSplits: 1)
                other.fields.lines[index] = RawFields.Line(name: String(parts[0]), value: String(parts[1]))
            }
            other.body = Array(bodyText.replacing(named, with: weaker).utf8)
            if other != self { found.append(("the signature under another name, \(weaker)", other)) }
        }
        return found
    }

    /// The request as a GET with the form in the query; nil where it is a GET already, or has no form.
    var asGET: RawRequest? {
        guard method == "POST", let form = bodyForm, queryForm.pairs.isEmpty else { return nil }
        var get = self
        get.method = "GET"
        get.bodyForm = nil
        get.queryForm = form
        return get
    }

    private var unsigned: RawRequest {
        var bare = self
        for name in ["Signature", "Signature-Input", "X-Auth-Signature"] { bare.fields.remove(name) }
        if fields["Authorization"]?.hasPrefix("AWS4") == true { bare.fields.remove("Authorization") }
        for name in ["sign", "auth_signature"] {
            if bare.bodyForm?[name] != nil { bare.bodyForm?[name] = nil }
            if bare.queryForm[name] != nil { bare.queryForm[name] = nil }
        }
        return bare
    }

    /// Names of an algorithm, tag or version, each with a weaker one.
    private static let weakerNames = [
        (#"alg="hmac-sha256""#, #"alg="none""#), (#"tag="countersign""#, #"tag="none""#),
        ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1"), ("auth_version=1.0", "auth_version=2"),
        ("auth_version=1.0", "auth_version=0"),
        ("X-Auth-Version: 4", "X-Auth-Version: 3"),
    ]
}

/// Which schemes protect less than others.
extension RowProfile.Scheme {
    /// Rungs of the login ladder that are weaker than this scheme's login.
    var weakerRungs: [RowProfile.LadderRung] {
        switch self {
        case .ladder(let rung): RowProfile.LadderRung.allCases.prefix { $0 != rung }
        case .tokens, .token, .openRoute: [.plainGet]
        case .formMD5: [.plainGet, .plainPost, .base64]
        case .messageSignaturesWithPassword, .countersign: RowProfile.LadderRung.allCases
        case .apiKey: []
        }
    }

    /// Signature schemes that protect less, the weakest first.
    var weakerSignatures: ArraySlice<RowProfile.Scheme> {
        switch self {
        case .ladder, .tokens, .token, .openRoute: []
        case .formMD5, .apiKey: Self.signatures.prefix { $0 != self }
        case .messageSignaturesWithPassword, .countersign: Self.signatures[...]
        }
    }

    /// The scheme's name for the report.
    var label: String {
        switch self {
        case .ladder(let rung): rung.rawValue
        case .formMD5: "form-md5"
        case .apiKey(let scheme): scheme.rawValue
        case .tokens: "tokens"
        case .token: "token"
        case .openRoute: "open-route"
        case .messageSignaturesWithPassword, .countersign: "message-signatures"
        }
    }

    private static let signatures: [RowProfile.Scheme] = [
        .formMD5, .apiKey(.authV2), .apiKey(.authV4), .apiKey(.authV1), .apiKey(.sigV4),
    ]
}

extension RowProfile {
    /// Whether the app signs its requests, so that an unsigned request is a weaker one.
    var signsRequests: Bool {
        switch scheme {
        case .formMD5, .apiKey, .messageSignaturesWithPassword, .countersign: true
        case .ladder, .tokens: server != .reference
        case .token, .openRoute: false
        }
    }
}
