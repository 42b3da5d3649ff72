import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// What sign-ups and logins compute with: OPAQUE's keys, the key that registrations travel under, and how records are kept.
package final class AccountKeys: Sendable {
    let deployment: Deployment
    let keys: ServerKeys
    let registrationKey: SealedBox.Receiver
    /// Names the OPRF keys of names without an account. Keyed, so that nobody can compute it; of the name, so that it stays
    /// the same from one login to the next, as an account's does.
    private let decoyKey: HMACSHA256
    /// The fake record, kept as real ones are: to open and read it is part of the same work.
    private let fake: StoredRegistration

    /// Makes the deployment's keys where it has none yet.
    package init(_ deployment: Deployment) throws(Fault) {
        self.deployment = deployment
        keys = try deployment.opaqueKeys()
        registrationKey = try deployment.registrationKey()
        let decoy = HKDFSHA512.expand(keys.bytes, info: Array("countersign/1 decoy credential".utf8), count: 32)
        decoyKey = decoy.withExposedBytes { HMACSHA256(key: $0) }
        let credential = [UInt8](repeating: 0, count: StoredRegistration.credentialCount)
        fake = StoredRegistration(
            credential: credential,
            sealedRecord: deployment.seal(keys.fakeRecord.bytes, as: .record(app: "", row: "fake", credential)))
    }

    /// A registration as the store keeps it: bound to app, name and credential, so that no row's opens for another.
    func keep(_ record: RegistrationRecord, credential: [UInt8], of account: AccountName, in app: AppName)
        -> StoredRegistration
    {
        let place = SealBinding.record(app: app.description, row: account.description, credential)
        return StoredRegistration(credential: credential, sealedRecord: deployment.seal(record.bytes, as: place))
    }

    /// What a login of that name is answered from: the account's own record, or the fake one under a credential that is the
    /// name's. Both are opened, read and answered with by the same steps; which it is shows in nothing that is sent.
    func record(
        of account: Account?, named name: AccountName, in app: AppName
    ) throws(Fault) -> (record: RegistrationRecord, credential: [UInt8]) {
        let decoy = decoyCredential(of: name, in: app)
        let own = account?.state == .removed ? nil : account?.registration
        let stored = own ?? fake
        let place: SealBinding =
            own == nil
            ? .record(app: "", row: "fake", stored.credential)
            : .record(app: app.description, row: name.description, stored.credential)
        guard let opened = deployment.open(stored.sealedRecord, as: place),
            let record = try? RegistrationRecord(opened)
        else {
            throw Fault(
                .failed,
                "account \(account?.number ?? 0): its sealed record does not open; the row was altered or moved")
        }
        return (record, own == nil ? decoy : stored.credential)
    }

    private func decoyCredential(of name: AccountName, in app: AppName) -> [UInt8] {
        // Neither holds a zero byte.
        let digest = decoyKey.authenticate((Array(app.description.utf8) + [0] + name.bytes).span)
        return (0..<StoredRegistration.credentialCount).map { digest[$0] }
    }
}

extension SealBinding {
    /// The credential has one length, so nothing in front of it can be taken for part of it.
    fileprivate static func record(app: String, row: String, _ credential: [UInt8]) -> SealBinding {
        SealBinding(kind: "opaque-record", app: app, row: "\(row) \(Hex.encode(credential.span))")
    }
}
