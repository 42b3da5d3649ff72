import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Both steps of a registration, without what is decided about it: whether the name may have one is asked when the record is
/// written. Source: docs/protocol.md, "Sign-up".
package struct Registration: Sendable {
    private let keys: AccountKeys
    private let purpose: RegistrationPurpose

    package init(_ keys: AccountKeys, for purpose: RegistrationPurpose) {
        self.keys = keys
        self.purpose = purpose
    }

    /// What the client needs to go on.
    package struct Begun: Sendable {
        /// OPAQUE's, 64 bytes.
        package let response: [UInt8]
        package let handle: [UInt8]
        /// X25519, 32 bytes.
        package let registrationKey: [UInt8]
    }

    /// Under a credential of its own, whether or not there is an account of that name: what it evaluates says nothing about
    /// any other. `request` is OPAQUE's, 32 bytes.
    package func start(
        _ request: [UInt8], of account: AccountName, in app: AppName, at now: Int64
    ) throws(Refusal) -> Begun {
        let request = try Registration.read(request)
        let handle = RegistrationHandle(at: now)
        do throws(CryptographyFault) {
            let response = try keys.keys.respond(to: request, credential: handle.credential)
            return Begun(
                response: response.bytes,
                handle: handle.sealed(for: purpose, of: account, in: app, by: keys.deployment),
                registrationKey: keys.registrationKey.publicHalf)
        } catch {
            throw Refusal(.unavailable, "registration: \(error)")
        }
    }

    /// What came sealed.
    package struct Finished: Sendable {
        /// As the store is to keep it.
        package let registration: StoredRegistration
        /// With which it is to take the place of the one that stands.
        package let resetCode: ResetCode?
    }

    package func finish(
        _ sealedRecord: [UInt8], handle: [UInt8], of account: AccountName, in app: AppName, at now: Int64
    ) throws(Refusal) -> Finished {
        let opened = try RegistrationHandle(
            handle, for: purpose, of: account, in: app, by: keys.deployment, at: now)
        let place = SealedRegistration.purpose(app: app.description, account: account, handle: handle)
        guard let contents = try? keys.registrationKey.open(sealedRecord, for: place),
            let sealed = SealedRegistration(contents), let record = try? RegistrationRecord(sealed.record)
        else { throw Refusal(.malformed, "the sealed record is not one for this account and handle") }
        return Finished(
            registration: keys.keep(record, credential: opened.credential, of: account, in: app),
            resetCode: try code(in: sealed))
    }

    private func code(in sealed: SealedRegistration) throws(Refusal) -> ResetCode? {
        guard let text = sealed.resetCode else { return nil }
        guard purpose == .signUp else { throw Refusal(.malformed, "a password is changed without a code") }
        guard let code = ResetCode(typed: text.withExposedBytes { $0.text }) else {
            throw Refusal(.malformed, "the code behind the record: expected \(ResetCode.expected)")
        }
        return code
    }

    private static func read(_ bytes: [UInt8]) throws(Refusal) -> RegistrationRequest {
        guard let request = try? RegistrationRequest(bytes) else {
            throw Refusal(.malformed, "member `request` is not OPAQUE's registration request")
        }
        return request
    }
}
