import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignAuthority

/// An upload ticket is found by its text alone, an invented ticket never causes a store access, and the token
/// of its session may have expired.
@Suite struct UploadTicketTests {
    private static let upload = UploadDescription(
        method: Array("PUT".utf8), authority: Array(SessionScene.authority.utf8), target: Array("/a".utf8),
        contentType: nil, length: 1, sha256: [UInt8](repeating: 1, count: 32))

    private func issue(_ scene: SessionScene, to session: TestSession) async throws -> UploadTicketToken {
        let (found, _) = try #require(try scene.live.session(for: session.token))
        return try await scene.life.issueTicket(
            for: UploadTicketTests.upload, to: found, from: scene.release(), expires: scene.now + 86_400,
            at: scene.now)
    }

    @Test("the text finds the ticket and its session, as long as that lives, whatever its token")
    func finds() async throws {
        let scene = try SessionScene(["upload-tickets=4"])
        let session = try await scene.signIn(scene.addAccount("alice"))
        let text = Array(try await issue(scene, to: session).text.utf8)
        scene.clock.now += 7_300
        let (ticket, holder) = try #require(try scene.live.find(uploadTicket: text.span))
        #expect(ticket.upload == UploadTicketTests.upload && ticket.release.description == "r_ios")
        #expect(holder.id == session.token.id && holder.expires == .max && holder.end == nil)
        #expect(try await scene.refusal(of: session)?.code == .tokenExpired)
        _ = try await scene.life.end(
            .one(session.token.id), with: SessionTermination(.revoked, at: scene.now))
        #expect(try scene.live.find(uploadTicket: text.span)?.1.end?.reason == .revoked)
    }

    @Test("a text that we did not issue is told without the store")
    func madeUp() async throws {
        let scene = try SessionScene(["upload-tickets=4"])
        let session = try await scene.signIn(scene.addAccount("alice"))
        let issued = Array(try await issue(scene, to: session).text.utf8)
        let store = FailingStore(
            StorePlace.sqlite(path: scene.deployment.folder.database).open(
                authenticatingBy: scene.deployment.rows))
        let live = try SessionDirectory(
            scene.deployment, keys: scene.keys, reader: store, writer: scene.writer)
        #expect(try live.find(uploadTicket: issued.span) != nil)
        store.fails = true
        #expect(throws: OperationalError.self) { try live.find(uploadTicket: issued.span) }
        for index in issued.indices {
            var changed = issued
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(try live.find(uploadTicket: changed.span) == nil, "\(index)")
        }
        for text in ["", "u_", "u_" + String(repeating: "A", count: 43), String(repeating: "u", count: 45)] {
            let bytes = Array(text.utf8)
            #expect(try live.find(uploadTicket: bytes.span) == nil)
        }
        #expect(try live.find(uploadTicket: Array(issued.dropLast()).span) == nil)
        let longer = issued + [UInt8(ascii: "A")]
        #expect(try live.find(uploadTicket: longer.span) == nil)
    }

    @Test("tickets of two deployments are not each other's")
    func otherDeployment() async throws {
        let (scene, other) = (try SessionScene(["upload-tickets=4"]), try SessionScene())
        let session = try await scene.signIn(scene.addAccount("alice"))
        let token = try await issue(scene, to: session)
        #expect(token.isIssued(under: scene.live.uploadTicketKey))
        #expect(!token.isIssued(under: other.live.uploadTicketKey))
    }
}
