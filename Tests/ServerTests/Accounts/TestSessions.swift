import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

/// Opens sessions in the store and answers with what a test looks at.
struct TestSessions: SessionOpening {
    let deployment: Deployment
    let writer: DirectWriter

    nonisolated(nonsending) func open(
        _ proved: ProvedLogin, for call: RouteCall, of release: ReleaseKey
    ) async throws(Refusal) -> RouteAnswer {
        guard let id = SessionID(SystemRandom().bytes(16).span), let platform = Platform(release.platform) else {
            throw Refusal(.unavailable)
        }
        let device = proved.binding.device
        let session = StoredSession(
            id: id, account: proved.account.number, app: proved.account.app, platform: platform,
            deviceClass: device.kind, deviceName: device.name.description, created: call.now,
            credentials: .device(
                DeviceCredentials(
                    signingKey: device.signingKey.bytes, agreementKey: device.agreementKey.bytes,
                    epochBegan: call.now, sealedRoot: [1])))
        let (slots, credential, now) = (release.policy.slots, proved.credential, call.now)
        let opened = try await writer.write { (store) throws(Fault) in
            try store.open(session, proving: credential, slots: slots, at: now)
        }
        guard case .yes = opened else { throw Login.wrong }
        // What only both ends can compute: a test compares it.
        let key = proved.keys.root.requestKey
        return RouteAnswer([
            "account": .string(proved.account.name.description), "session": .string(id.description),
            "key": encoded(key.withExposedBytes { bytes in bytes.indices.map { bytes[$0] } }),
        ])
    }

    func drop(_ ended: [SessionID]) {}
}
