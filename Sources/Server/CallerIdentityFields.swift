import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// What the upstream is told about a caller, and which of the caller's own fields it receives.
///
/// Confined to one loop: keeps the lines that are the same for every request of a release.
final class CallerIdentityFields {
    private static let mostKept = 1_024
    /// Bytes for the lines of a session and an event, which are composed anew each time.
    private static let roomForSession = 256
    private let asserter: AssertionIssuer
    private let callerFields: ForbiddenCallerFields
    private let proxies: TrustedProxies
    private let rewriter: FieldLineRewriter?
    private var kept: [ObjectIdentifier: (release: AppRelease, lines: [UInt8])] = [:]

    init(
        _ asserter: AssertionIssuer, proxies: TrustedProxies = TrustedProxies(),
        callerFields: ForbiddenCallerFields = ForbiddenCallerFields(), rewriter: FieldLineRewriter? = nil
    ) {
        self.asserter = asserter
        self.rewriter = rewriter
        self.callerFields = callerFields
        self.proxies = proxies
    }

    /// The gateway's own field lines, each with its CRLF. `unsigned` lists the parts of the body that no
    /// signature covers. Source: docs/protocol.md, "To the upstream".
    func lines(
        for caller: Caller, sending request: Request, leaving unsigned: [UInt8], over exchange: any Exchange,
        event: EventID, at now: @autoclosure () -> Int64
    ) throws(Refusal) -> [UInt8] {
        let client = ClientAddressFields.lines(for: exchange, sending: request, behind: proxies)
        var lines: [UInt8]
        if caller.withheld != nil {
            lines = compose(for: caller, client: client)
            CallerIdentityFields.append(event, to: &lines)
        } else {
            if !client.keepsLines(of: caller) {
                var lines = compose(for: caller, client: client)
                CallerIdentityFields.append(event, to: &lines)
                client.keep(lines, of: caller)
            }
            lines = client.lines(for: event)
        }
        if !unsigned.isEmpty {
            lines.append(contentsOf: "Countersign-Unsigned-Parts: ".utf8)
            lines.append(contentsOf: unsigned)
            lines.append(contentsOf: "\r\n".utf8)
        }
        if let observed = caller.observed { CallerIdentityFields.append(observed, to: &lines) }
        if caller.release.policy.assertion == .signed {
            try asserter.append(
                for: request, caller: caller, from: client.address, event: event, at: now(), to: &lines)
        }
        return rewriter?(lines, request) ?? lines
    }

    /// For a request that proved nothing: no identity, only its origin and the reason why it is forwarded.
    func lines(
        for passage: PassThrough, sending request: Request, over exchange: any Exchange, event: EventID
    ) -> [UInt8] {
        var lines = ClientAddressFields.lines(for: exchange, sending: request, behind: proxies).bytes
        if case .observed(let code) = passage.cause { CallerIdentityFields.append(code, to: &lines) }
        CallerIdentityFields.append(event, to: &lines)
        return rewriter?(lines, request) ?? lines
    }

    /// The lines that are the same for all requests of a caller over one connection, and cookies.
    private func compose(for caller: Caller, client: ClientAddressFields) -> [UInt8] {
        let release =
            caller.bearsTicket
            ? CallerIdentityFields.text(of: caller.release, scheme: Caller.ticketScheme)
            : releaseLines(for: caller.release)
        var lines: [UInt8] = []
        lines.reserveCapacity(release.count + client.bytes.count + CallerIdentityFields.roomForSession)
        lines.append(contentsOf: release)
        lines.append(contentsOf: client.bytes)
        if let session = caller.session { CallerIdentityFields.append(session, to: &lines) }
        if let cookies = caller.withheld?.cookies, !cookies.isEmpty {
            lines.append(contentsOf: "Cookie: ".utf8)
            lines.append(contentsOf: cookies)
            lines.append(contentsOf: "\r\n".utf8)
        }
        return lines
    }

    private static func append(_ verdict: Refusal.Code, to lines: inout [UInt8]) {
        lines.append(contentsOf: "Countersign-Verdict: \(verdict.rawValue)\r\n".utf8)
    }

    /// ``EventID`` stands right before the end; see ``ClientAddressFields/lines(for:)``.
    private static func append(_ event: EventID, to lines: inout [UInt8]) {
        lines.append(contentsOf: "Countersign-Event: ".utf8)
        let text = event.bytes
        text.span.withUnsafeBufferPointer { lines.append(contentsOf: $0) }
        lines.append(contentsOf: "\r\n".utf8)
    }

    private func releaseLines(for release: AppRelease) -> [UInt8] {
        if let entry = kept[ObjectIdentifier(release)], entry.release === release { return entry.lines }
        if kept.count >= CallerIdentityFields.mostKept { kept.removeAll() }
        let lines = CallerIdentityFields.text(of: release, scheme: release.scheme.rawValue)
        kept[ObjectIdentifier(release)] = (release, lines)
        return lines
    }

    private static func text(of release: AppRelease, scheme: String) -> [UInt8] {
        let fields = [
            ("Countersign-App", release.app), ("Countersign-Release", release.id.description),
            ("Countersign-Platform", release.platform), ("Countersign-Version", release.version),
            ("Countersign-Scheme", scheme),
        ]
        return fields.flatMap { (name, value) in Array("\(name): \(value)\r\n".utf8) }
    }

    /// The session's account and id. The subject is visible ASCII, whatever the account's name is.
    private static func append(_ session: Session, to lines: inout [UInt8]) {
        lines.append(contentsOf: "Countersign-Account: ".utf8)
        lines.append(contentsOf: session.account.subject.utf8)
        if let userID = session.account.userID {
            lines.append(contentsOf: "\r\nCountersign-User-Id: \(userID)".utf8)
        }
        lines.append(contentsOf: "\r\nCountersign-Session: ".utf8)
        lines.append(contentsOf: session.id.description.utf8)
        lines.append(contentsOf: "\r\n".utf8)
    }

    /// The fields to forward, for ``ForwardedRequest``: those the signature covers, those that the policy
    /// names, and those that may go uncovered (``FieldTraits/isHarmless``); never the fields that only a
    /// proxy may set.
    func forwardedFields(of request: borrowing Request, caller: Caller) -> FieldMask {
        let namesFields = !caller.release.policy.forwardedFields.isEmpty
        // Do not forward a bearer token of this authority, even if the signature covers it.
        let isBearer =
            caller.session?.kind == .bearer && (caller.withheld == nil || caller.bearsTicket)
        var forwarded = caller.coveredFields.mask
        for index in request.fields.indices {
            let field = request.fields[index]
            if isBearer && field.known == .authorization || callerFields.isRemoved(field, of: request) {
                forwarded.remove(index)
            } else if field.traits.contains(.isHarmless)
                || namesFields && caller.release.policy.forwardedFields.contains(request.text(field.name))
            {
                forwarded.insert(index)
            }
        }
        if let withheld = caller.withheld { forwarded.subtract(withheld.fields) }
        return forwarded
    }

    /// The fields to forward of a request that proved nothing: all that a proxy without keys would forward,
    /// except bearer tokens of this authority.
    func forwardedFields(ofUnproven request: borrowing Request) -> FieldMask {
        var forwarded = FieldMask()
        for index in request.fields.indices where index < FieldMask.limit {
            if callerFields.isRemoved(request.fields[index], of: request) { continue }
            let value = request.head.span.extracting(request.fields[index].value.range)
            if BearerTokenScanner.find(in: value) != nil { continue }
            // WebDAV names the target of a move here: another path than the one whose rule admitted the
            // request.
            if request.matches(request.fields[index].name, text: "destination") { continue }
            forwarded.insert(index)
        }
        return forwarded
    }
}
