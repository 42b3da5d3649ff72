import CountersignMemory
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// One registration and one login of OPAQUE, computed by the gateway's code from randomness that the port is
/// told.
struct OpaqueKnownAnswer {
    private let typed = Secret(random: 16)
    private let client = Array("alice".utf8)
    private let server = Array("shop".utf8)
    private let credential = SystemRandom().bytes(16)
    private let context = SystemRandom().bytes(45)

    private var parties: Parties {
        get throws(ConformanceError) {
            guard let client = PartyIdentity.Name(client), let server = PartyIdentity.Name(server) else {
                throw .notStaged("no identity")
            }
            return Parties(client: .name(client), server: .name(server))
        }
    }

    private var password: Password {
        get throws(ConformanceError) {
            guard let password = Password(typed) else { throw .notStaged("no password") }
            return password
        }
    }

    private struct RegistrationResult {
        var request: [UInt8]
        var response: [UInt8]
        var record: RegistrationRecord
        var random: RecordedRandomSource
    }

    private func register(with keys: ServerKeys) throws(ConformanceError) -> RegistrationResult {
        let random = RecordedRandomSource()
        let (password, parties) = (try password, try parties)
        do {
            let registration = try ClientRegistration(password, random: random)
            let request = registration.request
            let response = try keys.respond(to: request, credential: credential)
            let registered = try registration.finish(
                response, as: parties, stretching: .standard, random: random)
            return RegistrationResult(
                request: request.bytes, response: response.bytes, record: registered.record, random: random)
        } catch {
            throw .notStaged("\(error)")
        }
    }

    private func newKeys() throws(ConformanceError) -> ServerKeys {
        do { return try .random() } catch { throw .notStaged("\(error)") }
    }

    func checkRegistration(_ port: ClientPort) throws(ConformanceError) {
        let registered = try register(with: newKeys())
        let answer = try port.done(
            "known-registration",
            with: [
                "password": .bytes(typed.exposed), "blind": .bytes(try registered.random.scalar(0)),
                "response": .bytes(registered.response), "envelope_nonce": .bytes(registered.random[1]),
                "client": .bytes(client), "server": .bytes(server),
            ])
        try answer.expect("request", equals: registered.request, of: "The registration")
        try answer.expect("record", equals: registered.record.bytes.exposed, of: "The registration")
    }

    func checkLogin(_ port: ClientPort) throws(ConformanceError) {
        let keys = try newKeys()
        let record = try register(with: keys).record
        let random = RecordedRandomSource()
        guard let bound = LoginContext(context) else { throw .notStaged("no context") }
        let (parties, password) = (try parties, try password)
        let ke1: KE1
        let ke2: KE2
        let finished: ClientLogin.LoginOutput
        do {
            let login = try ClientLogin(password, random: random)
            ke1 = login.ke1
            let server = try ServerLogin(
                ke1, record: record, credential: credential, as: parties, context: bound, keys: keys)
            ke2 = server.ke2
            finished = try login.finish(ke2, as: parties, context: bound, stretching: .standard)
        } catch {
            throw ConformanceError.notStaged("\(error)")
        }
        let answer = try port.done(
            "known-login",
            with: [
                "password": .bytes(typed.exposed), "blind": .bytes(try random.scalar(0)),
                "nonce": .bytes(random[1]),
                "seed": .bytes(random[2]), "ke2": .bytes(ke2.bytes), "client": .bytes(client),
                "server": .bytes(self.server), "context": .bytes(context),
            ])
        try answer.expect("ke1", equals: ke1.bytes, of: "The login")
        try answer.expect("ke3", equals: finished.ke3.bytes, of: "The login")
        try answer.expect("session_key", equals: finished.sessionKey.exposed, of: "The login")
    }
}

/// A request to sign, and what its signature base must say. Which further components are covered, and in
/// which order, is the port's choice.
struct SignatureKnownAnswer {
    let method: String
    let target: String
    /// Lower-case names.
    var fields: [(String, String)] = []
    var body: [UInt8] = []

    static let samples: [SignatureKnownAnswer] = [
        SignatureKnownAnswer(method: "GET", target: "/hello"),
        SignatureKnownAnswer(method: "GET", target: "/a%20b/%E4?x=1&y=%2F&x=2"),
        SignatureKnownAnswer(method: "DELETE", target: "/items/7?"),
        SignatureKnownAnswer(
            method: "POST", target: "/orders", fields: [("content-type", "application/json")],
            body: Array(#"{"amount":5}"#.utf8)),
        SignatureKnownAnswer(
            method: "PUT", target: "/orders/1?draft",
            fields: [("content-type", "text/plain"), ("idempotency-key", "k-1")],
            body: [0, 255, 10, 13]),
    ]

    private static let authority = "api.example.com:8443"

    func check(_ port: ClientPort) throws(ConformanceError) {
        let random = SystemRandom()
        let (secret, nonce) = (random.bytes(32), Base64.encode(random.bytes(12).span, as: .url))
        let members = fields.map { (name: $0.0, value: JSONValue.string($0.1)) }
        let answer = try port.done(
            "known-signature",
            with: [
                "method": .string(method), "target": .string(target),
                "authority": .string(SignatureKnownAnswer.authority),
                "fields": .object(members), "body": .bytes(body), "key_id": "s_AAAAAAAAAAAAAAAAAAAAAA.3",
                "release": "r_known", "secret": .bytes(secret), "created": 1_763_719_200,
                "nonce": .string(nonce),
            ])
        let base = answer.text("base")
        try check(base, nonce: nonce)
        let message = Array(base.utf8)
        let sum = HMACSHA256(key: secret.span).authenticate(message.span)
        let bytes = sum.indices.map { sum[$0] }
        let expected = Base64.encode(bytes.span, as: .standard)
        guard answer.text("signature").contains(":\(expected):") else {
            throw ConformanceError(
                "\(what): the signature is :\(expected): for this base.", observed: answer.text("signature"))
        }
    }

    private var what: String { "\(method) \(target)" }

    private func check(_ base: String, nonce: String) throws(ConformanceError) {
        var lines = base.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let last = lines.popLast() ?? ""
        let names = lines.map { String($0.prefix { $0 != ":" }) }
        let values = self.values
        for (name, value) in values {
            if lines.contains("\(name): \(value)") { continue }
            let actual = lines.first { $0.hasPrefix("\(name):") } ?? "no line of that component"
            throw ConformanceError("\(what): the base has the line `\(name): \(value)`.", observed: actual)
        }
        let list = names.joined(separator: " ")
        guard last.hasPrefix("\"@signature-params\": (\(list))") else {
            throw ConformanceError(
                "\(what): the last line lists the components as they stand: (\(list)).", observed: last)
        }
        for part in ["created=1763719200", "nonce=\"\(nonce)\"", "keyid=\"s_AAAAAAAAAAAAAAAAAAAAAA.3\""] {
            if last.contains(";\(part)") { continue }
            throw ConformanceError("\(what): the last line has the parameter `\(part)`.", observed: last)
        }
    }

    /// By component, in quotes.
    private var values: [(String, String)] {
        let path = String(target.prefix { $0 != "?" })
        let query = target.dropFirst(path.count)
        var values = [
            ("\"@method\"", method), ("\"@authority\"", SignatureKnownAnswer.authority), ("\"@path\"", path),
            ("\"@query\"", query.isEmpty ? "?" : String(query)), ("\"countersign-release\"", "r_known"),
        ]
        values += fields.map { ("\"\($0.0)\"", $0.1) }
        if !body.isEmpty {
            let digest = SHA256.digest(body.span)
            let bytes = digest.indices.map { digest[$0] }
            let text = Base64.encode(bytes.span, as: .standard)
            values.append(("\"content-digest\"", "sha-256=:\(text):"))
        }
        return values
    }
}

/// Randomness that a port is told: drawn once, and given out in the same order.
final class RecordedRandomSource: RandomSource {
    private let drawn = Locked<[[UInt8]]>([])

    func bytes(_ count: Int) -> [UInt8] {
        let new = SystemRandom().bytes(count)
        drawn.with { $0.append(new) }
        return new
    }

    /// The bytes of one drawing.
    subscript(number: Int) -> [UInt8] { drawn.with { $0.indices.contains(number) ? $0[number] : [] } }

    /// The scalar that a drawing of 64 bytes is, 32 bytes, little-endian.
    func scalar(_ number: Int) throws(ConformanceError) -> [UInt8] {
        let wide = self[number]
        guard let scalar = Ristretto255.Scalar(reducing: Secret(copying: wide.span)) else {
            throw .notStaged("a scalar of zero")
        }
        return scalar.bytes.exposed
    }
}

extension Secret {
    /// For known answers, which are not secret.
    var exposed: [UInt8] {
        withExposedBytes { bytes in
            bytes.indices.map { bytes[$0] }
        }
    }
}
