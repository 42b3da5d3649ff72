import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Both steps of a registration, without the decision about it: the write checks whether the name may have
/// one. Source: docs/protocol.md, "Sign-up".
package struct Registration: Sendable {
    private let keys: AccountKeys
    private let purpose: RegistrationPurpose

    package init(_ keys: AccountKeys, for purpose: RegistrationPurpose) {
        self.keys = keys
        self.purpose = purpose
    }

    /// What the client needs for the second step.
    package struct StartResult: Sendable {
        /// OPAQUE's registration response, 64 bytes.
        package let response: [UInt8]
        package let handle: [UInt8]
        /// An X25519 public key, 32 bytes.
        package let registrationKey: [UInt8]
    }

    /// Answers under a new credential, whether or not there is an account of that name: the OPRF evaluation
    /// says nothing about any other registration. `request` is OPAQUE's registration request, 32 bytes.
    package func start(
        _ request: [UInt8], of account: AccountName, in app: AppName, at now: Int64
    ) throws(Refusal) -> StartResult {
        let request = try Registration.read(request)
        let handle = RegistrationHandle(at: now)
        let registrationKey = try keys.registrationKeys.publicHalf()
        do {
            let response = try keys.keys.respond(to: request, credential: handle.credential)
            return StartResult(
                response: response.bytes,
                handle: handle.sealed(for: purpose, of: account, in: app, by: keys.deployment),
                registrationKey: registrationKey)
        } catch {
            throw Refusal(.unavailable, detail: "registration: \(error)")
        }
    }

    /// The contents of the sealed registration.
    package struct FinishResult: Sendable {
        /// The registration in the form that the store keeps.
        package let registration: StoredRegistration
        /// The code by which the registration replaces the account's current credential.
        package let resetCode: ResetCode?
        /// The device that signed a registration with a code; nil if none did.
        package let device: ResetDevice?
    }

    /// `device` is the device that is to be known by the code's registration. Refuses with
    /// `wrong-credentials` if its proof does not hold, before the code is used up.
    package func finish(
        _ sealedRecord: [UInt8], handle: [UInt8], device: SignedResetDevice? = nil, of account: AccountName,
        in app: AppName, at now: Int64
    ) throws(Refusal) -> FinishResult {
        let opened = try RegistrationHandle(
            handle, for: purpose, of: account, in: app, by: keys.deployment, at: now)
        let place = SealedRegistration.purpose(app: app.description, account: account, handle: handle)
        guard let contents = try keys.registrationKeys.open(sealedRecord, for: place, at: now),
            let sealed = SealedRegistration(contents), let record = try? RegistrationRecord(sealed.record)
        else { throw Refusal(.malformed, detail: "the sealed record is not for this account and handle") }
        let code = try code(in: sealed)
        if let device {
            guard let text = sealed.resetCode else {
                throw Refusal(
                    .malformed, detail: "member `device`: only a registration with a reset code has one")
            }
            let transcript = device.device.transcript(
                app: app.description, account: account, handle: handle, sealedRecord: sealedRecord)
            guard device.holds(for: transcript, code: text) else { throw Login.wrongCredentials }
        }
        return FinishResult(
            registration: keys.seal(record, credential: opened.credential, of: account, in: app),
            resetCode: code, device: device?.device)
    }

    private func code(in sealed: SealedRegistration) throws(Refusal) -> ResetCode? {
        guard let text = sealed.resetCode else { return nil }
        guard purpose == .signUp else {
            throw Refusal(.malformed, detail: "a change of password takes no reset code")
        }
        guard let code = ResetCode(typed: text.withExposedBytes { $0.text }) else {
            throw Refusal(
                .malformed, detail: "the reset code after the record: expected \(ResetCode.expected)")
        }
        return code
    }

    private static func read(_ bytes: [UInt8]) throws(Refusal) -> RegistrationRequest {
        guard let request = try? RegistrationRequest(bytes) else {
            throw Refusal(.malformed, detail: "member `request` is not OPAQUE's registration request")
        }
        return request
    }
}

/// The state of a started registration, sealed and given to the client to send back: the server stores
/// nothing for registrations that are never finished. Source: docs/protocol.md, "Sign-up".
struct RegistrationHandle: Sendable {
    /// Seconds for which a handle is valid.
    static let lifetime: Int64 = 600

    var credential: [UInt8]
    /// Whole Unix seconds.
    var until: Int64

    /// A handle for a new registration, with a random credential.
    init(at now: Int64, random: some RandomSource = SystemRandom()) {
        credential = random.bytes(StoredRegistration.credentialCount)
        until = now + RegistrationHandle.lifetime
    }

    /// Valid for that purpose, name and app only.
    func sealed(
        for purpose: RegistrationPurpose, of account: AccountName, in app: AppName, by deployment: Deployment
    )
        -> [UInt8]
    {
        let time = (0..<8).map { UInt8(truncatingIfNeeded: UInt64(bitPattern: until) >> UInt64(56 - 8 * $0)) }
        return deployment.seal(
            Secret(copying: (credential + time).span), as: .registrationHandle(purpose, of: account, in: app))
    }

    /// Refuses with `malformed` if the handle was sealed for another registration or has expired.
    init(
        _ sealed: [UInt8], for purpose: RegistrationPurpose, of account: AccountName, in app: AppName,
        by deployment: Deployment, at now: Int64
    ) throws(Refusal) {
        let count = StoredRegistration.credentialCount
        let binding = SealBinding.registrationHandle(purpose, of: account, in: app)
        guard let opened = deployment.openHeld(sealed, as: binding), opened.count == count + 8
        else { throw Refusal(.malformed, detail: "the handle is not for this registration") }
        let bytes = opened.withExposedBytes { span in span.indices.map { span[$0] } }
        credential = Array(bytes[..<count])
        until = Int64(bitPattern: bytes[count...].reduce(0) { $0 << 8 | UInt64($1) })
        guard now < until else {
            throw Refusal(.malformed, detail: "the handle has run out: start the registration again")
        }
    }
}

/// The purpose of a registration: a handle for one purpose is invalid for the other.
package enum RegistrationPurpose: String, Sendable {
    case signUp = "sign-up"
    case passwordChange = "password-change"
}

extension SealBinding {
    fileprivate static func registrationHandle(
        _ purpose: RegistrationPurpose, of account: AccountName, in app: AppName
    ) -> SealBinding {
        SealBinding(
            kind: "registration-handle-\(purpose.rawValue)", app: app.description, row: account.description)
    }
}
