import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The keys on both sides of a refresh. What fails here is the authority's own fault, and closes this session alone.
extension SessionLife {
    /// Nil for an epoch whose root is not kept any more.
    func requestKey(
        of epoch: UInt32, _ device: DeviceCredentials, _ row: StoredSession
    ) throws(Refusal) -> Secret? {
        guard let sealed = device.sealedRoot(of: epoch) else { return nil }
        return try attempt { () throws(Fault) in
            try deployment.root(sealed, of: row.id, in: row.app, epoch: epoch)
        }.requestKey
    }

    /// The next root: from this one and what the device's key agrees on with an ephemeral one, whose private half is
    /// forgotten here, so that who copies the roots that are kept cannot compute those to come.
    func successor(
        of device: DeviceCredentials, _ row: StoredSession, attempt: [UInt8]
    ) throws(Refusal) -> DeviceCredentials.Successor {
        try self.attempt { () throws(Fault) in
            let root = try deployment.root(device.sealedRoot, of: row.id, in: row.app, epoch: device.epoch)
            let (ephemeral, agreed) = try SessionLife.agree(with: device.agreementKey, of: row.id)
            let sealed = deployment.seal(root.next(agreed: agreed), of: row.id, in: row.app, epoch: device.epoch + 1)
            return DeviceCredentials.Successor(sealedRoot: sealed, ephemeral: ephemeral, attempts: [attempt])
        }
    }

    private static func agree(
        with point: [UInt8], of id: SessionID
    ) throws(Fault) -> (ephemeral: [UInt8], agreed: Secret) {
        guard let device = P256Point(point), let ephemeral = try? AgreementKey(),
            let agreed = try? ephemeral.sharedSecret(with: device)
        else { throw Fault(.failed, "session \(id): no key can be agreed with the device's") }
        return (ephemeral.publicPoint.bytes, agreed)
    }

    func renewed(
        _ left: SessionToken, _ row: StoredSession, _ successor: DeviceCredentials.Successor, _ key: Secret,
        at now: Int64
    ) throws(Refusal) -> RenewedSession {
        let policy = try policy(of: row.app)
        return RenewedSession(
            token: SessionToken(id: left.id, epoch: left.epoch + 1), ephemeral: successor.ephemeral,
            expires: now.later(by: policy.tokenLifetime), idleEnd: row.used.later(by: policy.sessionIdle),
            signer: Credentials(keyID: KeyID(left), key: SigningKey(key)))
    }

    package func read(_ id: SessionID) throws(Refusal) -> StoredSession? {
        try attempt { () throws(Fault) in try reader.session(id) }
    }

    package func policy(of app: AppName) throws(Refusal) -> Policy {
        try attempt { () throws(Fault) in
            guard let policy = try live.keys.policy(of: app) else { throw Fault(.failed, "app \(app): there is none") }
            return policy
        }
    }

    /// What is our own fault is no answer about the session: the client asks again.
    func attempt<Result>(_ body: () throws(Fault) -> Result) throws(Refusal) -> Result {
        do throws(Fault) {
            return try body()
        } catch {
            throw Refusal(.unavailable, error.message, retryAfter: 5)
        }
    }
}
