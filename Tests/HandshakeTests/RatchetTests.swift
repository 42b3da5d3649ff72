import CountersignSeal
import Testing

@testable import CountersignHandshake

/// Both ends of the ratchet derive the same keys; a third party cannot.
@Suite struct RatchetTests {
    private func bytes(_ secret: Secret) -> [UInt8] {
        secret.withExposedBytes { span in span.indices.map { span[$0] } }
    }

    @Test func bothEndsReachTheSameRoot() throws {
        let root = SessionRoot(secret: Secret(random: SessionRoot.count))
        let device = try AgreementKey()
        let server = try AgreementKey()
        let here = root.next(agreed: try device.sharedSecret(with: server.publicPoint))
        let there = root.next(agreed: try server.sharedSecret(with: device.publicPoint))
        #expect(bytes(here.requestKey) == bytes(there.requestKey))
        #expect(bytes(here.secret) != bytes(root.secret))
        #expect(bytes(here.requestKey) != bytes(here.secret))
    }

    @Test func whoCopiedTheRootCannotFollow() throws {
        let root = SessionRoot(secret: Secret(random: SessionRoot.count))
        let server = try AgreementKey()
        let device = try AgreementKey()
        let thief = try AgreementKey()
        let next = root.next(agreed: try device.sharedSecret(with: server.publicPoint))
        let guessed = root.next(agreed: try thief.sharedSecret(with: server.publicPoint))
        #expect(bytes(next.secret) != bytes(guessed.secret))
    }

    @Test func aLoginsKeysAreApart() {
        let keys = LoginKeys(sessionKey: Secret(copying: [UInt8](repeating: 7, count: 64).span))
        let again = LoginKeys(sessionKey: Secret(copying: [UInt8](repeating: 7, count: 64).span))
        #expect(bytes(keys.root.secret) == bytes(again.root.secret))
        #expect(bytes(keys.root.secret) != bytes(keys.root.requestKey))
        #expect(bytes(keys.root.secret).count == SessionRoot.count)
    }
}
