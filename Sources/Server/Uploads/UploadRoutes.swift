import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

/// `POST uploads`: a session asks for a ticket for one upload that is sent later and without a signature.
/// Source: docs/protocol.md, "Upload tickets"; decision 0047.
struct UploadRoutes: Sendable {
    private let sessions: SessionLifecycle
    /// Bytes of a body that the gateway forwards, as a reload has set them last.
    private let mostBytes: @Sendable () -> Int
    /// The prefix of the authority's own routes: no ticket is valid for these.
    private let prefix: [UInt8]

    init(_ sessions: SessionLifecycle, running: RunningConfiguration) {
        self.init(
            sessions, mostBytes: { running.bodyBytes }, prefix: running.current.prefix)
    }

    init(_ sessions: SessionLifecycle, mostBytes: @escaping @Sendable () -> Int, prefix: String) {
        self.sessions = sessions
        self.mostBytes = mostBytes
        self.prefix = Array(prefix.utf8)
    }

    var routes: [Route] {
        [
            Route(.uploads) { (call) throws(Refusal) in
                try await issue(call)
            }
        ]
    }

    private func issue(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let session = try call.session()
        guard let release = call.caller?.release else { throw Refusal(.unsigned) }
        let policy = release.policy
        guard policy.uploadTickets > 0 else {
            throw Refusal(
                .forbidden, detail: "app \(release.app) allows no upload tickets (policy upload-tickets)")
        }
        let members = try RequestBodyMembers(of: call.request.body)
        let host = call.request.head.span.extracting(call.request.authority.range)
        let asked = try UploadRequest(
            members, authority: host.indices.map { ASCII.lowercased(host[$0]) }, mostBytes: mostBytes())
        guard asked.lifetime <= policy.uploadTicketLifetime else {
            throw members.malformed(
                "expires_in", expected: "at most \(policy.uploadTicketLifetime) (policy upload-ticket-max)")
        }
        try check(asked, by: policy)
        let expires = call.now + asked.lifetime
        let ticket = try await sessions.issueTicket(
            for: asked.upload, to: session, from: release, expires: expires, at: call.now)
        return RouteResult(["ticket": .string(ticket.text), "expires": .integer(expires)], status: 201)
    }

    /// Refuses a request for which the gateway would accept no ticket.
    private func check(_ asked: UploadRequest, by policy: Policy) throws(Refusal) {
        guard !asked.upload.target.starts(with: prefix) else {
            throw Refusal(.forbidden, detail: "an upload ticket is for routes of the backend")
        }
        guard policy.legacyLogin != .allowed || LegacyEndpoints(policy).match(for: asked.head) == nil else {
            throw Refusal(.forbidden, detail: "an upload ticket is for no path where old clients sign in")
        }
        guard try policy.routes.decision(for: asked.head).level < .device else {
            throw Refusal(
                .forbidden, detail: "the route asks for the device's signature, which an upload ticket is not"
            )
        }
    }
}

/// The body of `POST uploads`: the one request that the ticket is for. Source: docs/protocol.md, "Upload
/// tickets".
struct UploadRequest: Sendable {
    /// Bytes of a target.
    static let longestTarget = 4_096
    private static let longestType = 256

    let upload: UploadDescription
    /// The head of that request, parsed by the same rules as any other, without its body.
    let head: Request
    /// In seconds.
    let lifetime: Int64

    /// `authority` is the host that receives the call.
    init(_ members: RequestBodyMembers, authority: [UInt8], mostBytes: Int) throws(Refusal) {
        let method = try members.text("method")
        guard UploadDescription.methods.contains(where: { "\($0)" == method }) else {
            throw members.malformed("method", expected: "PUT, POST or PATCH")
        }
        let target = Array(try members.text("target").utf8)
        guard (1...UploadRequest.longestTarget).contains(target.count), target.first == UInt8(ascii: "/")
        else {
            throw members.malformed(
                "target",
                expected: "a path that begins with /, of at most \(UploadRequest.longestTarget) bytes")
        }
        let type = try members.text(ifAny: "content_type").map { Array($0.utf8) }
        if let type {
            let isVisible = type.allSatisfy { (0x20...0x7E).contains($0) }
            guard (1...UploadRequest.longestType).contains(type.count), isVisible, type.first != 0x20,
                type.last != 0x20
            else { throw members.malformed("content_type", expected: "a media type") }
        }
        let length = try members.integer("length", in: 0...mostBytes)
        upload = UploadDescription(
            method: Array(method.utf8), authority: authority, target: target, contentType: type,
            length: Int(length), sha256: try UploadRequest.digest(members))
        lifetime = try members.integer("expires_in", in: 1...86_400)
        guard let head = UploadRequest.head(of: upload) else {
            throw members.malformed("target", expected: "a request target in origin form")
        }
        self.head = head
    }

    /// SHA-256 in the format of `Content-Digest`. Source: RFC 9530 §2.
    private static func digest(_ members: RequestBodyMembers) throws(Refusal) -> [UInt8] {
        let text = try members.text("content_digest")
        guard text.hasPrefix("sha-256=:"), text.hasSuffix(":"), text.utf8.count == 54,
            let bytes = Base64.decode(String(text.dropFirst(9).dropLast()), as: .standard), bytes.count == 32
        else { throw members.malformed("content_digest", expected: "sha-256=:BASE64:, of 32 bytes") }
        return bytes
    }

    /// Nil if the strict parser rejects the target as it stands.
    private static func head(of upload: UploadDescription) -> Request? {
        var bytes = upload.method + [UInt8(ascii: " ")] + upload.target
        bytes += Array(" HTTP/1.1\r\nhost: ".utf8) + upload.authority + Array("\r\n\r\n".utf8)
        var request = Request()
        var parser = HeadParser(limits: Limits(), rules: HeadRules(), transport: .tls)
        guard let parsed = try? parser.parse(bytes.span, into: &request), parsed.length == bytes.count,
            Array(request.head[request.target.range]) == upload.target, request.absoluteAuthority.isEmpty,
            request.framing == .none
        else { return nil }
        return request
    }
}

extension Gateway {
    /// Forwards an upload to the backend after claiming its ticket. The ticket stays used unless the backend
    /// cannot have received the whole upload, as with idempotency keys (decision 0019).
    @inline(never)
    func forwardUpload(
        by ticket: UploadTicketRecord, exchange: any Exchange, request: Request, from caller: Caller,
        judgement: Judgement, event: RequestEvent
    ) async throws(Refusal) {
        let attempt = try await idempotency.claim(ticket, at: clock.now)
        let progress = UploadProgress()
        let result: Result<Void, Refusal>
        do {
            result = .success(
                try await send(
                    exchange, request: request, from: caller, judgement: judgement, event: event,
                    observer: progress))
        } catch {
            result = .failure(error)
        }
        if !progress.isReached { await idempotency.abandon(ticket, attempt: attempt) }
        try result.get()
    }
}

/// Notes whether the backend can have received the whole upload. Confined to the loop of its exchange.
private final class UploadProgress: UpstreamResponseObserver {
    private(set) var isReached = false

    func requestMayHaveBeenProcessed() { isReached = true }
    // An answer that comes before the upload's end still answers the upload.
    func didBegin(status: Int, fields: UpstreamResponseFields) { isReached = true }
    func didRead(_ bytes: Span<UInt8>) {}
    func didEnd() {}
    var wantsRest: Bool { false }
}

/// Ensures that an upload ticket is used once. Source: docs/protocol.md, "Upload tickets".
extension IdempotencyCoordinator {

    /// Claims the ticket durably before the upload reaches the backend; returns the number of the attempt.
    func claim(_ ticket: UploadTicketRecord, at now: Int64) async throws(Refusal) -> Int {
        let id = ticket.id
        let claim = try await writer.write { (store) throws(OperationalError) in
            try store.claimUploadTicket(id, at: now)
        }
        switch claim {
        case .yes(let attempt): return attempt
        case .used(let time): throw ticket.used(at: time)
        case .exhausted:
            throw Refusal(
                .badTicket, detail: "the upload ticket was tried \(UploadTicketRecord.mostAttempts) times")
        case .over:
            throw Refusal(.badTicket, detail: "the upload ticket ran out, or its session has just ended")
        }
    }

    /// Makes the ticket usable again if the backend cannot have received the whole upload. If the store
    /// fails, the ticket stays used.
    func abandon(_ ticket: UploadTicketRecord, attempt: Int) async {
        let id = ticket.id
        try? await writer.write { (store) throws(OperationalError) in
            try store.abandonUploadTicket(id, attempt: attempt)
        }
    }
}
