import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// The keys of sign-ups and logins: OPAQUE's keys, the keys that registrations are encrypted to, and the
/// sealing of records.
package final class AccountKeys: Sendable {
    let deployment: Deployment
    let keys: ServerKeys
    package let registrationKeys: RegistrationKeys
    /// Names the OPRF keys of names without an account. It is keyed, so that outsiders cannot compute it,
    /// and depends on the name, so that it stays the same from one login to the next, as an account's
    /// credential does.
    private let decoyKey: HMACSHA256
    /// The fake record, sealed like real ones, because opening and reading it is part of the same work.
    private let fake: StoredRegistration

    /// Creates the deployment's keys if there are none yet.
    package init(_ deployment: Deployment) throws(OperationalError) {
        self.deployment = deployment
        keys = try deployment.opaqueKeys()
        registrationKeys = try RegistrationKeys(deployment)
        let decoy = HKDFSHA512.expand(
            keys.bytes, info: Array("countersign/1 decoy credential".utf8), count: 32)
        decoyKey = decoy.withExposedBytes { HMACSHA256(key: $0) }
        let credential = [UInt8](repeating: 0, count: StoredRegistration.credentialCount)
        fake = StoredRegistration(
            credential: credential,
            sealedRecord: deployment.masterKey.sealForMemory(
                keys.fakeRecord.bytes, as: .record(app: "", row: "fake", credential: credential)))
    }

    /// Seals a registration for the store, bound to app, name and credential, so that one row's record does
    /// not open for another.
    func seal(_ record: RegistrationRecord, credential: [UInt8], of account: AccountName, in app: AppName)
        -> StoredRegistration
    {
        let place = SealBinding.record(app: app.description, row: account.description, credential: credential)
        return StoredRegistration(
            credential: credential, sealedRecord: deployment.seal(record.bytes, as: place))
    }

    /// The record that a login of that name is answered from: the account's own, or the fake one with a
    /// credential derived from the name. Both are opened, read and answered by the same steps, so that no
    /// answer tells them apart.
    func record(
        of account: Account?, named name: AccountName, in app: AppName
    ) throws(OperationalError) -> (record: RegistrationRecord, credential: [UInt8]) {
        let decoy = decoyCredential(of: name, in: app)
        let own = account?.state == .removed ? nil : account?.registration
        let stored = own ?? fake
        let place: SealBinding =
            own == nil
            ? .record(app: "", row: "fake", credential: stored.credential)
            : .record(app: app.description, row: name.description, credential: stored.credential)
        guard let opened = deployment.open(stored.sealedRecord, as: place),
            let record = try? RegistrationRecord(opened)
        else {
            throw OperationalError(
                .failed,
                message:
                    "account \(account?.number ?? 0): its sealed record does not open; the row was "
                    + "altered or moved"
            )
        }
        return (record, own == nil ? decoy : stored.credential)
    }

    private func decoyCredential(of name: AccountName, in app: AppName) -> [UInt8] {
        // Neither part contains a zero byte.
        let digest = decoyKey.authenticate((Array(app.description.utf8) + [0] + name.bytes).span)
        return (0..<StoredRegistration.credentialCount).map { digest[$0] }
    }
}

extension SealBinding {
    static let opaqueKeys = SealBinding(kind: "opaque-keys", row: "opaque-keys")

    /// The credential has a fixed length, so no part before it can be read as part of it.
    static func record(app: String, row: String, credential: [UInt8]) -> SealBinding {
        SealBinding(kind: "opaque-record", app: app, row: "\(row) \(Hex.encode(credential.span))")
    }
}

/// The long-lived keys of sign-up and login, each sealed under the master key and created at first use.
extension Deployment {
    /// OPAQUE's seed and key pair. Every registration depends on them: without them each account would have
    /// to register anew.
    func opaqueKeys() throws(OperationalError) -> ServerKeys {
        let bytes = try loadOrCreate(.opaqueKeys, as: .opaqueKeys) {
            () throws(OperationalError) in
            try OperationalError.translating("OPAQUE keys") { () throws(SealError) in
                try ServerKeys.random().bytes
            }
        }
        let keys = try OperationalError.translating("OPAQUE keys") { () throws(SealError) in
            try ServerKeys(bytes)
        }
        guard let keys else {
            throw OperationalError(.failed, message: "OPAQUE keys: the sealed value is invalid")
        }
        return keys
    }

    /// Opens the sealed value of that name. If the store lacks it, seals and stores the result of `fresh`,
    /// unless another process has stored one meanwhile.
    private func loadOrCreate(
        _ name: MetaName, as place: SealBinding, orElse fresh: () throws(OperationalError) -> Secret
    ) throws(OperationalError) -> Secret {
        var sealed = try store.value(of: name)
        if sealed == nil { sealed = try store.setIfAbsent(name, to: seal(fresh(), as: place)) }
        guard let opened = open(sealed ?? [], as: place) else {
            throw OperationalError(
                .failed, message: "\(name.rawValue): its sealed value does not open; the row was altered")
        }
        return opened
    }
}

extension OperationalError {
    /// Translates a cryptographic failure to an operational error that names its purpose.
    static func translating<Result>(
        _ what: String, body: () throws(SealError) -> Result
    ) throws(OperationalError) -> Result {
        do {
            return try body()
        } catch {
            throw OperationalError(.failed, message: "\(what): \(error)")
        }
    }
}
