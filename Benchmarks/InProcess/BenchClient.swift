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
    private let app: AppName
    private let binding: LoginBinding
    private let signing: PrivateKey
    private let password: Password
    private let stretching: KeyStretchingFunction
    private var login: ClientLogin?

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
        let client = try ClientRegistration(password)
        let begun = try registration.start(client.request.bytes, of: name, in: app, at: now)
        guard let parties = binding.parties else {
            throw OperationalError(.failed, message: "bench: no parties")
        }
        let registered = try client.finish(
            try RegistrationResponse(begun.response), as: parties, stretching: stretching)
        let purpose = SealedRegistration.purpose(app: app.description, account: name, handle: begun.handle)
        let sealed = SealedRegistration(record: registered.record.bytes).sealed(
            to: begun.registrationKey, for: purpose)
        return try registration.finish(sealed ?? [], handle: begun.handle, of: name, in: app, at: now)
            .registration
    }

    /// The first message of a login.
    func begin() throws -> LoginStart {
        let login = try ClientLogin(password)
        let start = try LoginStart(ke1: login.ke1.bytes, binding: binding, of: app)
        self.login = consume login
        return start
    }

    /// The last message of a login.
    func end(_ answer: LoginAnswer) throws -> LoginFinish {
        guard let login = login.take(), let parties = binding.parties, let context = binding.context else {
            throw OperationalError(.failed, message: "bench: no login was begun")
        }
        let ke1 = login.ke1.bytes
        let proof = try login.finish(
            try KE2(answer.ke2), as: parties, context: context, stretching: stretching)
        let keys = LoginKeys(sessionKey: proof.sessionKey)
        let transcript = binding.finishTranscript(
            .login, loginID: answer.loginID, ke1: ke1, ke2: answer.ke2, ke3: proof.ke3.bytes)
        let signature = signing.sign(transcript.span) ?? []
        let mac = keys.finish.authenticate((transcript + signature).span)
        return LoginFinish(
            loginID: answer.loginID, ke3: proof.ke3.bytes, signature: signature,
            mac: mac.indices.map { mac[$0] })
    }
}
