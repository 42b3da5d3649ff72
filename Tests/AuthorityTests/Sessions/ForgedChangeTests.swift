import CountersignSQL
import CountersignWire
import Testing

@testable import CountersignAuthority

/// A row with a number far ahead, which a writer to the database adds for a moment, does not make a running
/// server miss the changes that come after it.
@Suite struct ForgedChangeTests {
    @Test("a revocation by another process is seen", arguments: [true, false])
    func revocation(isDeleted: Bool) async throws {
        let scene = try SessionScene(["slots=unlimited"])
        let session = try await scene.signIn(scene.addAccount("alice"))
        #expect(try await scene.refusal(of: session) == nil)
        try execute(
            sql: """
                INSERT INTO session (
                    change, id, account, app, platform, device_class, device_name, created, used, token_hash,
                    token_expires, login_token_hash, token_issued, opening)
                VALUES (9000000000, zeroblob(16), 1, 'demo', 'ios', 'phone', 'p', 1, 1, x'01', 1, x'02', 1,
                    'signed')
                """, in: scene.folder)
        try scene.live.reconcile()
        if isDeleted { try execute(sql: "DELETE FROM session WHERE change = 9000000000", in: scene.folder) }
        let other = try deployment(scene.folder.data)
        _ = try other.revokeSession(session.token.id, at: scene.now)
        #expect(try await scene.refusal(of: session)?.endedSession?.reason == "revoked")
    }

    @Test("after numbers that were set back, changes are read again from there")
    func setBack() async throws {
        let scene = try SessionScene(["slots=unlimited"])
        let session = try await scene.signIn(scene.addAccount("alice"))
        for _ in 0..<3 {
            _ = try await scene.signIn(scene.addAccount("b\(UInt32.random(in: 0...UInt32.max))"))
        }
        try scene.live.reconcile()
        // The rows are as in an earlier copy, and their later numbers free again.
        try execute(
            sql: "DELETE FROM session WHERE change > 1; UPDATE session_change SET number = 1",
            in: scene.folder)
        try scene.live.reconcile()
        let other = try deployment(scene.folder.data)
        _ = try other.revokeSession(session.token.id, at: scene.now)
        #expect(try await scene.refusal(of: session)?.endedSession?.reason == "revoked")
    }
}
