import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Countersign whole. What passes on the wire of a login is OPAQUE's, and good for that login alone; what passes of a session is its
/// token, which names it. Source: docs/protocol.md, "Sessions".
struct CountersignCraft: Craft {
    private let destination: Destination

    init(_ destination: Destination) { self.destination = destination }

    func login(in exchange: RawExchange) -> CapturedLogin? { nil }

    /// The session's token stands in each of its requests as the key id.
    func token(in exchange: RawExchange) -> CapturedToken? {
        guard let input = exchange.request.fields["Signature-Input"],
            let token = MessageSignatureAmbiguities.parameter("keyid", of: input), token.hasPrefix("s_")
        else { return nil }
        return CapturedToken(token: token)
    }

    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? { nil }

    /// A login is two requests with a computation between them: what can be done with a password is for the SDK to do.
    func login(name: String, password: String, key: AppKey) -> RawRequest? { nil }

    func token(from response: RawResponse) -> CapturedToken? { nil }

    /// The nearest that a thief of token and release key comes to it: the session's name, under the only key that he has.
    func transfer(_ order: Order, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        guard let key, let release = KeyID(key.id) else { return nil }
        var credentials = Credentials(keyID: release, key: SigningKey(key.secret))
        if let token {
            guard let session = KeyID(token.token) else { return nil }
            (credentials.keyID, credentials.release) = (session, release)
        }
        return RawRequest.transfer(json: order, namingThePayer: nil)
            .signed(with: MessageSignatures(), credentials, at: destination)
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        MessageSignatureAmbiguities.restamped(request, at: now)
    }

    var ambiguities: [Ambiguity] { MessageSignatureAmbiguities.all }
}
