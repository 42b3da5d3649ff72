import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// One client of the login benchmark. Its own computation happens on the client's device, so it stretches the
/// password as little as possible. Used by one thread at a time.
final class BenchClient: @unchecked Sendable {
    let name: AccountName
    let app: AppName
    let binding: LoginBinding
    let signing: PrivateKey
    private let password: Password
    private let stretching: KeyStretchingFunction
    private var registration: ClientRegistration?
    private var login: ClientLogin?
    /// The session root of the login that was finished last; nil before.
    private(set) var root: SessionRoot?

    init(_ number: Int, of app: AppName, release: String) throws(OperationalError) {
        do {
            name = try AccountName(normalizing: "account-\(number)")
            signing = try PrivateKey(random: .ecdsaP256)
            let agreement = try AgreementKey().publicPoint
            guard let password = Password(Secret(random: 16)),
                let point = P256Point(subjectPublicKeyInfo: signing.publicKey.der),
                let label = Device.Name("bench"),
                let stretching = KeyStretchingFunction.argon2id(
                    memory: 8, passes: 1, lanes: 1, salt: [UInt8](repeating: 0, count: 16))
            else { throw OperationalError(.failed, message: "bench: no device") }
            self.app = app
            self.password = password
            self.stretching = stretching
            binding = LoginBinding(
                app: app.description, account: name, release: release,
                device: Device(signingKey: point, agreementKey: agreement, kind: .phone, name: label))
        } catch {
            throw OperationalError(.failed, message: "bench: \(error)")
        }
    }

    /// A registration as the server keeps it.
    func register(_ registration: Registration, at now: Int64) throws -> StoredRegistration {
        let begun = try registration.start(try beginRegistration(), of: name, in: app, at: now)
        let sealed = try endRegistration(
            response: begun.response, handle: begun.handle, key: begun.registrationKey)
        return try registration.finish(sealed, handle: begun.handle, of: name, in: app, at: now)
            .registration
    }

    /// The first message of a registration.
    func beginRegistration() throws -> [UInt8] {
        let begun = try ClientRegistration(password)
        let request = begun.request.bytes
        registration = consume begun
        return request
    }

    /// The sealed record. `key` is the authority's key to seal to.
    func endRegistration(response: [UInt8], handle: [UInt8], key: [UInt8]) throws -> [UInt8] {
        guard let client = registration.take(), let parties = binding.parties else {
            throw OperationalError(.failed, message: "bench: no registration was begun")
        }
        let registered = try client.finish(
            try RegistrationResponse(response), as: parties, stretching: stretching)
        let purpose = SealedRegistration.purpose(app: app.description, account: name, handle: handle)
        return SealedRegistration(record: registered.record.bytes).sealed(to: key, for: purpose) ?? []
    }

    /// The first message of a login.
    func begin() throws -> LoginStart {
        try LoginStart(ke1: try beginLogin(), binding: binding, of: app)
    }

    /// OPAQUE's KE1 message.
    func beginLogin() throws -> [UInt8] {
        let login = try ClientLogin(password)
        let ke1 = login.ke1.bytes
        self.login = consume login
        return ke1
    }

    /// The last message of a login.
    func end(_ answer: LoginAnswer) throws -> LoginFinish {
        try endLogin(id: answer.loginID, ke2: answer.ke2)
    }

    /// The last message of the login with that id. `ke2` is OPAQUE's KE2 message, which must prove that the
    /// server has the account's record.
    func endLogin(id loginID: [UInt8], ke2: [UInt8]) throws -> LoginFinish {
        guard let login = login.take(), let parties = binding.parties, let context = binding.context else {
            throw OperationalError(.failed, message: "bench: no login was begun")
        }
        let ke1 = login.ke1.bytes
        let proof = try login.finish(
            try KE2(ke2), as: parties, context: context, stretching: stretching)
        let keys = LoginKeys(sessionKey: proof.sessionKey)
        root = keys.root
        let transcript = binding.finishTranscript(
            .login, loginID: loginID, ke1: ke1, ke2: ke2, ke3: proof.ke3.bytes)
        let signature = signing.sign(transcript.span) ?? []
        let mac = keys.finish.authenticate((transcript + signature).span)
        return LoginFinish(
            loginID: loginID, ke3: proof.ke3.bytes, signature: signature,
            mac: mac.indices.map { mac[$0] })
    }
}
