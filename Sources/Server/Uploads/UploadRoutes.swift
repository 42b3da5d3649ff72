import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

/// `POST uploads`: a session asks for a ticket for one upload that is sent later and without a signature.
/// Source: docs/protocol.md, "Upload tickets"; decision 0047.
struct UploadRoutes: Sendable {
    private let sessions: SessionLife
    /// Bytes of a body that the gateway forwards.
    private let mostBytes: Int
    /// Where our own routes stand: no ticket is for these.
    private let prefix: [UInt8]

    init(_ sessions: SessionLife, _ configuration: Configuration) {
        self.init(sessions, mostBytes: configuration.limits.bodyBytes, prefix: configuration.prefix)
    }

    init(_ sessions: SessionLife, mostBytes: Int, prefix: String) {
        self.sessions = sessions
        self.mostBytes = mostBytes
        self.prefix = Array(prefix.utf8)
    }

    var routes: [Route] {
        [
            Route(method: "POST", path: "/uploads", admission: .session) { (call) throws(Refusal) in
                try await issue(call)
            }
        ]
    }

    private func issue(_ call: RouteCall) async throws(Refusal) -> RouteAnswer {
        let session = try call.session()
        guard let release = call.caller?.release else { throw Refusal(.unsigned) }
        let policy = release.policy
        guard policy.uploadTickets > 0 else {
            throw Refusal(.forbidden, "app \(release.app) allows no upload tickets (policy upload-tickets)")
        }
        let members = try Members(of: call.request.body)
        let host = call.request.head.span.extracting(call.request.authority.range)
        let asked = try UploadRequest(
            members, authority: host.indices.map { ASCII.lowercased(host[$0]) }, mostBytes: mostBytes)
        guard asked.lifetime <= policy.uploadTicketLifetime else {
            throw members.malformed(
                "expires_in", expected: "at most \(policy.uploadTicketLifetime) (policy upload-ticket-max)")
        }
        try check(asked, by: policy)
        let expires = call.now + asked.lifetime
        let ticket = try await sessions.issueTicket(
            for: asked.upload, to: session, from: release, expires: expires, at: call.now)
        return RouteAnswer(["ticket": .string(ticket.text), "expires": .integer(expires)], status: 201)
    }

    /// Refuses what no ticket would be taken for.
    private func check(_ asked: UploadRequest, by policy: Policy) throws(Refusal) {
        guard !asked.upload.target.starts(with: prefix) else {
            throw Refusal(.forbidden, "an upload ticket is for routes of the backend")
        }
        guard try policy.routes.decision(for: asked.head).level < .device else {
            throw Refusal(
                .forbidden, "the route asks for the device's signature, which an upload ticket is not")
        }
    }
}
