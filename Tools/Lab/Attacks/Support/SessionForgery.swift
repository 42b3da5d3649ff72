import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Requests under a session's token, signed with any key. Source: docs/protocol.md, "Sessions".
struct SessionForgery {
    /// The calling release, which every copy of the app contains.
    let release: AppKey
    let context: SigningContext

    /// A transfer; nil where `keyID` is not valid.
    func transfer(
        _ order: TransferOrder, under keyID: String, signedWith key: Secret,
        adding fields: [(String, String)] = []
    ) -> RawRequest? {
        let body = JSONValue.object([("to", .string(order.payee)), ("amount", .integer(Int64(order.amount)))])
        return post("/transfer", body: body, under: keyID, signedWith: key, adding: fields)
    }

    /// A call with a JSON body; nil where `keyID` is not valid.
    func post(
        _ path: String, body: JSONValue, under keyID: String, signedWith key: Secret,
        adding fields: [(String, String)] = []
    ) -> RawRequest? {
        guard let id = KeyID(keyID), let caller = KeyID(release.id) else { return nil }
        var credentials = Credentials(keyID: id, key: SigningKey(key))
        credentials.release = caller
        var request = RawRequest(method: "POST", target: path, body: Array(body.text.utf8))
        request.fields = RawFields(
            [.init(name: "Content-Type", value: "application/json")]
                + fields.map { .init(name: $0.0, value: $0.1) })
        return request.signed(with: MessageSignatures(), credentials: credentials, at: context)
    }
}

extension Stage {
    /// Signs requests of this row with the keys that the attacker obtains.
    var forgery: SessionForgery {
        SessionForgery(
            release: appKey,
            context: SigningContext(
                authority: network.authority, transport: row.transport == .plain ? .plain : .tls,
                platform: BankApp.platform, version: BankApp.version))
    }
}

extension JSONValue {
    /// Bytes as Countersign's messages carry them: base64url without padding.
    static func base64(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes.span, as: .url)) }
}

/// A login with a random password from an unknown device, which shows only how the server treats the name.
struct LoginProbe: Sendable {
    let stage: Stage

    /// The request whose response may depend on the name. Throws where the scheme has none.
    func request(_ name: String) throws(LabError) -> RawRequest {
        if let login = stage.attackKit.login(
            name: name, password: "\(SystemRandom().bytes(6))", key: stage.appKey)
        {
            return login
        }
        guard
            let start = stage.forgery.post(
                "/countersign/v1/login/start", body: try start(name), under: stage.appKey.id,
                signedWith: stage.appKey.secret)
        else { throw LabError("\(stage.row.name): a login cannot be written") }
        return start
    }

    /// The request that follows the response; nil where none does.
    func request(after response: RawResponse) -> RawRequest? {
        guard let document = try? JSONReader.read(response.body),
            let login = document.root["login_id"]?.string
        else {
            return nil
        }
        let random = SystemRandom()
        let body: JSONValue = [
            "login_id": .string(login), "ke3": .base64(random.bytes(64)),
            "signature": .base64(random.bytes(64)),
            "mac": .base64(random.bytes(32)),
        ]
        return stage.forgery.post(
            "/countersign/v1/login/finish", body: body, under: stage.appKey.id,
            signedWith: stage.appKey.secret)
    }

    /// OPAQUE's first message with a random element instead of a password, from a device with keys of its
    /// own.
    private func start(_ name: String) throws(LabError) -> JSONValue {
        do {
            let random = SystemRandom()
            let element = try Ristretto255.Element(generatorTimes: .random(random))
            let share = try Ristretto255.Element(generatorTimes: .random(random))
            let device: JSONValue = [
                "signing_key": .base64(try AgreementKey().publicPoint.bytes),
                "agreement_key": .base64(try AgreementKey().publicPoint.bytes), "class": "phone",
                "name": "some phone",
            ]
            return [
                "account": .string(name), "ke1": .base64(element.bytes + random.bytes(32) + share.bytes),
                "device": device,
            ]
        } catch {
            throw LabError("\(stage.row.name): a login cannot be computed: \(error)")
        }
    }
}

extension Stage {
    /// Checks that requests signed with the app's key have a valid signature: else the server would refuse
    /// every forgery for the signature alone.
    func requireValidForgery() async throws {
        guard row.isOurs else { return }
        let response = try await network.send(LoginProbe(stage: self).request("no such user"))
        // An unknown name gets the same response as a known one.
        guard response.status == 200, response.member("login_id") != nil else {
            throw LabError(
                "\(row.name): expected a login to begin, by what the app's key signs: \(response.shown)")
        }
    }
}
