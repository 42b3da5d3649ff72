import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The complete Countersign protocol. A login's messages are OPAQUE's and are valid for that login alone; a
/// session's requests carry its token, which names the session and is no secret. Source: docs/protocol.md,
/// "Sessions".
struct CountersignAttackKit: SchemeAttackKit {
    private let context: SigningContext

    init(_ destination: SigningContext) { self.context = destination }

    func login(in exchange: RawExchange) -> CapturedLogin? { nil }

    /// The session's token is the key id of each of its requests.
    func token(in exchange: RawExchange) -> CapturedToken? {
        guard let input = exchange.request.fields["Signature-Input"],
            let token = MessageSignatureAmbiguities.parameter("keyid", of: input), token.hasPrefix("s_")
        else { return nil }
        return CapturedToken(token: token)
    }

    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? { nil }

    /// Nil: a login is two requests with a computation in between, which only the SDK performs.
    func login(name: String, password: String, key: AppKey) -> RawRequest? { nil }

    func token(from response: RawResponse) -> CapturedToken? { nil }

    /// A request that names the captured session and is signed with the release key, the only key that the
    /// attacker has.
    func transfer(_ order: TransferOrder, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        guard let key, let release = KeyID(key.id) else { return nil }
        var credentials = Credentials(keyID: release, key: SigningKey(key.secret))
        if let token {
            guard let session = KeyID(token.token) else { return nil }
            (credentials.keyID, credentials.release) = (session, release)
        }
        return RawRequest.transfer(json: order, namingThePayer: nil)
            .signed(with: MessageSignatures(), credentials: credentials, at: context)
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        MessageSignatureAmbiguities.restamped(request, at: now)
    }

    var ambiguities: [Ambiguity] { MessageSignatureAmbiguities.all }
}

/// message-signatures with the release key, with the password and bearer tokens inside TLS. Source:
/// docs/protocol.md, "Bearer sessions".
struct PasswordAttackKit: SchemeAttackKit {
    static let loginPath = "/countersign/v1/login/password"

    private let context: SigningContext

    init(_ destination: SigningContext) { self.context = destination }

    func login(in exchange: RawExchange) -> CapturedLogin? {
        guard exchange.request.path == PasswordAttackKit.loginPath,
            let name = exchange.request.textMember("account"),
            let password = exchange.request.textMember("password")
        else { return nil }
        return CapturedLogin(name: name, value: password)
    }

    func token(in exchange: RawExchange) -> CapturedToken? {
        exchange.bearerToken() ?? exchange.response.flatMap { token(from: $0) }
    }

    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? {
        guard let key else { return nil }
        let body: JSONValue = [
            "account": .string(login.name), "password": .string(login.value),
            "device": ["class": "phone", "name": "another"],
        ]
        var request = RawRequest(method: "POST", target: PasswordAttackKit.loginPath)
        request.fields["Content-Type"] = "application/json"
        request.body = Array(body.text.utf8)
        return signed(request, key: key)
    }

    func login(name: String, password: String, key: AppKey) -> RawRequest? {
        login(CapturedLogin(name: name, value: password), key: key)
    }

    func token(from response: RawResponse) -> CapturedToken? {
        guard response.member("login_token") != nil else { return nil }
        return response.member("token").map { CapturedToken(token: $0) }
    }

    func transfer(_ order: TransferOrder, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        guard let token, let key else { return nil }
        return signed(.transfer(json: order, namingThePayer: nil).bearing(token), key: key)
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        MessageSignatureAmbiguities.restamped(request, at: now)
    }

    var ambiguities: [Ambiguity] { MessageSignatureAmbiguities.all }

    private func signed(_ request: RawRequest, key: AppKey) -> RawRequest? {
        request.signed(with: MessageSignatures(), as: key.id, secret: key.secret, at: context)
    }
}

extension RawRequest {
    /// A member of the JSON body whose value is a string.
    func textMember(_ name: String) -> String? {
        guard let document = try? JSONReader.read(body) else { return nil }
        return document.root[name]?.string
    }
}

/// Points on which two verifiers of RFC 9421 may disagree: which signature counts, which digest, which of two
/// members.
enum MessageSignatureAmbiguities {
    static let all = [
        Ambiguity(
            "member-twice", sentence: "writes the payee's member twice, with a digest that fits",
            apply: membersTwice),
        Ambiguity(
            "two-digests", sentence: "adds a digest of its own body beside the one that is signed",
            apply: twoDigests),
        Ambiguity(
            "second-signature", sentence: "puts a signature that covers less in front of the genuine one",
            apply: twoSignatures),
        Ambiguity(
            "body-uncovered", sentence: "takes the digest from the list of what is covered",
            apply: uncoveredBody),
    ]

    /// The parameter `name` of the first signature, without quotes.
    static func parameter(_ name: String, of input: String) -> String? {
        input.split(separator: ";").first { $0.hasPrefix("\(name)=") }.map { part in
            let value = part.dropFirst(name.count + 1).prefix { $0 != "," }
            return value.hasPrefix("\"") ? String(value.dropFirst().prefix { $0 != "\"" }) : String(value)
        }
    }

    static func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        guard let input = request.fields["Signature-Input"], let created = parameter("created", of: input),
            let range = input.firstRange(of: "created=\(created)")
        else { return nil }
        var copy = request
        copy.fields["Signature-Input"] = input.replacingCharacters(of: range, with: "created=\(now)")
        return copy
    }

    private static func membersTwice(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        AuthAmbiguities.payeeMemberTwice(request, order: order, names: ["to"]).flatMap {
            [$0, $0.digested()]
        }
    }

    private static func twoDigests(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        guard let genuine = request.fields["Content-Digest"] else { return [] }
        let changed = request.paying(order.payee)
        var (list, lines) = (changed, changed)
        list.fields["Content-Digest"] = "\(genuine), \(changed.digest)"
        lines.fields.lines.append(.init(name: "Content-Digest", value: changed.digest))
        return [list, lines]
    }

    private static func twoSignatures(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        guard let input = request.fields["Signature-Input"], let signature = request.fields["Signature"],
            let equals = input.firstIndex(of: "="), let end = input.firstIndex(of: ")"),
            let value = signature.firstIndex(of: "=")
        else { return [] }
        let less = "x=(\"@method\")\(input[input.index(after: end)...])"
        var (first, last) = (request.paying(order.payee).digested(), request.paying(order.payee).digested())
        first.fields["Signature-Input"] = "\(less), \(input)"
        first.fields["Signature"] = "x=\(signature[signature.index(after: value)...]), \(signature)"
        last.fields["Signature-Input"] = "\(input), \(less)"
        last.fields["Signature"] = "\(signature), x\(signature[value...])"
        return equals < end ? [first, last] : []
    }

    private static func uncoveredBody(_ request: RawRequest, order: TransferOrder) -> [RawRequest] {
        guard let input = request.fields["Signature-Input"] else { return [] }
        var copy = request.paying(order.payee)
        let range = input.firstRange(of: " \"content-digest\"")
        copy.fields["Signature-Input"] = range.map { input.replacingCharacters(of: $0, with: "") } ?? input
        copy.fields["Content-Digest"] = nil
        return [copy]
    }
}

extension RawRequest {
    /// `sha-256=:…:` of the body. Source: RFC 9530.
    var digest: String { "sha-256=:\(Base64.encode(SHA256.digest(body.span).span, as: .standard)):" }

    /// The same request; an existing digest is replaced by the right one.
    func digested() -> RawRequest {
        var copy = self
        if copy.fields["Content-Digest"] != nil { copy.fields["Content-Digest"] = digest }
        return copy
    }
}

extension String {
    fileprivate func replacingCharacters(of range: Range<String.Index>, with text: String) -> String {
        "\(self[..<range.lowerBound])\(text)\(self[range.upperBound...])"
    }
}
