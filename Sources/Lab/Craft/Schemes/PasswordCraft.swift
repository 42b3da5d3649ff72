import CountersignSchemes
import CountersignSeal
import CountersignWire

/// message-signatures by the release, with the password and bearer tokens inside TLS. Source: docs/protocol.md, "Bearer sessions".
struct PasswordCraft: Craft {
    static let loginPath = "/countersign/v1/login/password"

    private let destination: Destination

    init(_ destination: Destination) { self.destination = destination }

    func login(in exchange: RawExchange) -> CapturedLogin? {
        guard exchange.request.path == PasswordCraft.loginPath, let name = exchange.request.textMember("account"),
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
        var request = RawRequest("POST", PasswordCraft.loginPath)
        request.fields["Content-Type"] = "application/json"
        request.body = Array(body.text.utf8)
        return signed(request, key)
    }

    func login(name: String, password: String, key: AppKey) -> RawRequest? {
        login(CapturedLogin(name: name, value: password), key: key)
    }

    func token(from response: RawResponse) -> CapturedToken? {
        guard response.member("login_token") != nil else { return nil }
        return response.member("token").map { CapturedToken(token: $0) }
    }

    func transfer(_ order: Order, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        guard let token, let key else { return nil }
        return signed(.transfer(json: order, namingThePayer: nil).bearing(token), key)
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        MessageSignatureAmbiguities.restamped(request, at: now)
    }

    var ambiguities: [Ambiguity] { MessageSignatureAmbiguities.all }

    private func signed(_ request: RawRequest, _ key: AppKey) -> RawRequest? {
        request.signed(with: MessageSignatures(), as: key.id, key.secret, at: destination)
    }
}

extension RawRequest {
    /// A member of the JSON body whose value is a string.
    func textMember(_ name: String) -> String? {
        guard let document = try? JSONReader.read(body) else { return nil }
        return document.root[name]?.string
    }
}
