import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Schemes by which the app signs with one key for all its users, and says in a parameter whose account it is about: auth-v1, auth-v2,
/// auth-v4 and sigv4. Nobody signs in. Source: docs/protocol.md, their sections.
struct APIKeyCraft: Craft {
    private let scheme: RowProfile.APIKeyScheme
    private let destination: Destination

    init(_ scheme: RowProfile.APIKeyScheme, _ destination: Destination) {
        self.scheme = scheme
        self.destination = destination
    }

    func login(in exchange: RawExchange) -> CapturedLogin? { nil }

    func token(in exchange: RawExchange) -> CapturedToken? { nil }

    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? { nil }

    func login(name: String, password: String, key: AppKey) -> RawRequest? { nil }

    func token(from response: RawResponse) -> CapturedToken? { nil }

    func transfer(_ order: Order, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        guard let key else { return nil }
        let form = RawRequest.transfer(form: order, namingThePayer: order.payer)
        switch scheme {
        case .authV1: return form.signed(with: AuthV1(), as: key.id, key.secret, at: destination)
        case .authV2: return form.signed(with: AuthV2(), as: key.id, key.secret, at: destination)
        case .sigV4: return form.signed(with: SigV4(), as: key.id, key.secret, at: destination)
        case .authV4:
            let json = RawRequest.transfer(json: order, namingThePayer: order.payer)
            return json.signed(with: AuthV4(), as: key.id, key.secret, at: destination)
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
