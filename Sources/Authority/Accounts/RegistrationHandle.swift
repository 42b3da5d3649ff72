import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// The authority's own note of a registration that was begun, given to the client to bring back: nothing is kept here for
/// those that never come. Source: docs/protocol.md, "Sign-up".
struct RegistrationHandle: Sendable {
    /// Seconds for which it is good.
    static let lifetime: Int64 = 600

    var credential: [UInt8]
    /// Whole Unix seconds.
    var until: Int64

    /// For a new registration: the credential is random.
    init(at now: Int64, random: some RandomSource = SystemRandom()) {
        credential = random.bytes(StoredRegistration.credentialCount)
        until = now + RegistrationHandle.lifetime
    }

    /// Good for that purpose, name and app only.
    func sealed(for purpose: RegistrationPurpose, of account: AccountName, in app: AppName, by deployment: Deployment)
        -> [UInt8]
    {
        let time = (0..<8).map { UInt8(truncatingIfNeeded: UInt64(bitPattern: until) >> UInt64(56 - 8 * $0)) }
        return deployment.seal(
            Secret(copying: (credential + time).span), as: .registrationHandle(purpose, of: account, in: app))
    }

    /// `malformed` where it is another's, or has run out.
    init(
        _ sealed: [UInt8], for purpose: RegistrationPurpose, of account: AccountName, in app: AppName,
        by deployment: Deployment, at now: Int64
    ) throws(Refusal) {
        let count = StoredRegistration.credentialCount
        guard let opened = deployment.open(sealed, as: .registrationHandle(purpose, of: account, in: app)),
            opened.count == count + 8
        else { throw Refusal(.malformed, "the handle is not one of this registration") }
        let bytes = opened.withExposedBytes { span in span.indices.map { span[$0] } }
        credential = Array(bytes[..<count])
        until = Int64(bitPattern: bytes[count...].reduce(0) { $0 << 8 | UInt64($1) })
        guard now < until else { throw Refusal(.malformed, "the handle has run out: begin the registration again") }
    }
}

/// What a registration is for: a handle for one is none for the other.
package enum RegistrationPurpose: String, Sendable {
    case signUp = "sign-up"
    case passwordChange = "password-change"
}

extension SealBinding {
    fileprivate static func registrationHandle(
        _ purpose: RegistrationPurpose, of account: AccountName, in app: AppName
    ) -> SealBinding {
        SealBinding(kind: "registration-handle-\(purpose.rawValue)", app: app.description, row: account.description)
    }
}
