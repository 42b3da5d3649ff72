import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

/// The gate's decisions on upload tickets: a ticket is good for the one upload that it was issued for, until
/// it expires or is used, and never on a route that needs the device's signature.
@Suite struct UploadTicketGateTests {
    @Test("a ticket is good until it expires")
    func expires() async throws {
        let scene = try TicketScene()
        let ticket = try await scene.issue(for: scene.upload())
        #expect(await scene.refusal(of: scene.request(ticket)) == nil)
        scene.base.clock.now += 599
        #expect(await scene.refusal(of: scene.request(ticket)) == nil)
        scene.base.clock.now += 1
        #expect(await scene.refusal(of: scene.request(ticket))?.code == .badTicket)
    }

    @Test("a used ticket is refused before the upload's body is read")
    func claimed() async throws {
        let scene = try TicketScene()
        let ticket = try await scene.issue(for: scene.upload())
        let text = Array(ticket.utf8)
        let (found, _) = try #require(try scene.base.live.find(uploadTicket: text.span))
        let store = scene.base.deployment.store
        guard case .yes = try store.claimUploadTicket(found.id, at: scene.base.now) else {
            Issue.record("the ticket was not free")
            return
        }
        #expect(await scene.refusal(of: scene.request(ticket))?.code == .replayed)
    }

    @Test("a ticket proves no key of the device, whose session's requests do")
    func proof() async throws {
        let scene = try TicketScene()
        let ticket = Array(try await scene.issue(for: scene.upload()).utf8)
        let found = try scene.base.live.find(uploadTicket: ticket.span)
        let session = try #require(found).1
        #expect(session.keyPossession == .none)
        let token = SessionToken(id: session.id, epoch: 0)
        #expect(try scene.base.live.session(for: token)?.0.keyPossession == .software)
    }

    @Test("a ticket is not the signature of a device")
    func device() async throws {
        let scene = try TicketScene()
        let rule = try #require(RouteRule(prefix: Array("/payments".utf8), level: .device))
        try scene.base.deployment.setRoute(rule, of: scene.base.app)
        let target = "/payments/1"
        let ticket = try await scene.issue(for: scene.upload(target))
        #expect(await scene.refusal(of: scene.request(ticket, target: target))?.code == .deviceUnsigned)
        let free = try await scene.issue(for: scene.upload("/files/1"))
        #expect(await scene.refusal(of: scene.request(free, target: "/files/1")) == nil)
    }

    @Test("a ticket is good for no other upload")
    func otherUpload() async throws {
        let scene = try TicketScene()
        let ticket = try await scene.issue(for: scene.upload(contentType: "image/png"))
        func refusal(
            _ method: String = "PUT", target: String = TicketScene.target, type: String = "image/png",
            body: String = TicketScene.body
        ) async -> Refusal.Code? {
            let request = scene.request(ticket, method: method, target: target, type: type, body: body)
            return await scene.refusal(of: request)?.code
        }
        #expect(await refusal() == nil)
        #expect(await refusal("POST") == .badTicket)
        #expect(await refusal(target: "/other") == .badTicket)
        #expect(await refusal(target: TicketScene.target + "?x=1") == .badTicket)
        #expect(await refusal(type: "image/gif") == .badTicket)
        #expect(await refusal(body: TicketScene.body + "!") == .badTicket)
        #expect(await refusal(body: String(TicketScene.body.reversed())) == .bodyMismatch)
    }
}

/// A device's session in an app with upload tickets.
private struct TicketScene {
    static let target = "/files/a"
    static let body = "the upload"

    let base: SessionScene

    init(_ settings: [String] = []) throws {
        base = try SessionScene(["upload-tickets=4"] + settings)
    }

    func upload(_ target: String = TicketScene.target, contentType: String? = nil) -> UploadDescription {
        let body = Array(TicketScene.body.utf8)
        let digest = SHA256.digest(body.span)
        return UploadDescription(
            method: Array("PUT".utf8), authority: Array(SessionScene.authority.utf8),
            target: Array(target.utf8), contentType: contentType.map { Array($0.utf8) }, length: body.count,
            sha256: digest.indices.map { digest[$0] })
    }

    /// The text of a new ticket that lives ten minutes.
    func issue(for upload: UploadDescription) async throws -> String {
        let session = try await base.signIn(base.addAccount("user\(UInt64.random(in: 0...UInt64.max))"))
        let (found, _) = try #require(try base.live.session(for: session.token))
        return try await base.life.issueTicket(
            for: upload, to: found, from: base.release(), expires: base.now + 600, at: base.now
        ).text
    }

    func request(
        _ ticket: String, method: String = "PUT", target: String = TicketScene.target, type: String? = nil,
        body: String = TicketScene.body
    ) -> Request {
        var draft = Draft(method: method, target: Array(target.utf8), authority: SessionScene.authority)
        draft.setField("Countersign-Ticket", to: ticket)
        if let type { draft.setField("Content-Type", to: type) }
        draft.body = Array(body.utf8)
        return draft.request()
    }

    func refusal(of request: Request) async -> Refusal? {
        do throws(Refusal) {
            _ = try await base.gate.judge(request)
            return nil
        } catch {
            return error
        }
    }
}
