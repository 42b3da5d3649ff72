import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire
import Glibc

/// What the log records about one request: the caller, the request and the outcome. Never a secret, a query
/// or a body.
///
/// A class, because it has a copy of what a refusal or a proxy's question needs, and most steps pass it on.
/// Confined to the loop of its request.
class RequestEvent: @unchecked Sendable {
    private(set) var id: EventID
    /// When the request began, in nanoseconds of the monotonic clock.
    private(set) var began: UInt64
    /// How long the request took; 0 while it goes on.
    private(set) var nanoseconds: UInt64 = 0
    /// The request's place in a trace of the gateway's; nil as long as it has none.
    var trace: RequestTrace?
    /// Fields of the response about rates and keys, and for web pages.
    var trafficFields: [ServerResponse.Field] = []
    /// How the request was counted; nil if it is not.
    var counted: CountedRequest?
    /// What the request asks the authority to do, if the metrics count that.
    var operation: AuthorityOperation?
    var caller: Caller?
    var refusal: Refusal?
    /// Why the response was not delivered. Nil for a request that was refused before it was admitted: there
    /// the refusal is the outcome, whether or not the client has received it.
    var failure: DeliveryFailure?
    /// Whether the response is the backend's to an earlier copy of the request.
    var isRepeated = false
    /// Why the request was forwarded although it proved nothing.
    var passage: PassThrough?
    /// The request that a proxy asked about; nil unless this request asks for a decision.
    var original: DecideSubject?
    /// Whether a legacy client sent a right password or login token: such a client signs nothing.
    var isSignedIn = false
    /// What such a client's call is counted for: the release that it names, or the app.
    var unsignedParty: CountedParty?

    /// Whether the request went on to the backend, or to a route of the authority that asks for a proof.
    var isAdmitted: Bool { caller != nil || passage != nil }

    /// What the request has proved about its caller, whether or not it was refused; nil for nothing. The log
    /// line, the sampler, the refusals that are kept and the trace all follow it.
    func proof(after judgement: Judgement) -> CallerProof? {
        if let caller { return caller.proof }
        // A right password proves no more to the log than a key that is in every copy of the app.
        return judgement.proof ?? (isSignedIn ? .release : nil)
    }

    /// The caller as it shares bounds with other verified callers; nil if nothing was proved.
    func verifiedParty(of exchange: any Exchange, after judgement: Judgement) -> VerifiedParty? {
        proof(after: judgement).map { VerifiedParty($0, from: exchange.source.address) }
    }

    /// `began` is when the loop began to serve the request, in nanoseconds of the monotonic clock.
    init(id: EventID, began: Int64) {
        self.id = id
        self.began = UInt64(began)
    }

    /// Makes it the event of another request.
    func renew(id: EventID, began: Int64) {
        self.id = id
        self.began = UInt64(began)
        nanoseconds = 0
        // What most requests do not have is compared first, which costs less than to destroy nothing.
        if trace != nil { trace = nil }
        if !trafficFields.isEmpty { trafficFields = [] }
        counted = nil
        if operation != nil { operation = nil }
        if case .some = caller { caller = nil }
        if refusal != nil { refusal = nil }
        if failure != nil { failure = nil }
        if passage != nil { passage = nil }
        if original != nil { original = nil }
        isSignedIn = false
        isRepeated = false
        if case .some = unsignedParty { unsignedParty = nil }
    }

    /// Ends the request.
    func end() { nanoseconds = RequestEvent.nanoseconds() &- began }

    /// One JSON line, written over `buffer`. `client` is the client that a trusted proxy names.
    func line(
        for exchange: any Exchange, from client: String?, after judgement: Judgement, tracer: LoopTracer,
        clock: inout LogClock, reusing buffer: consuming [UInt8]
    ) -> [UInt8] {
        buffer.removeAll(keepingCapacity: true)
        var line = JSONLine(reusing: buffer)
        line.add("time", value: clock.text())
        let identifier = id.bytes
        line.add("event", value: identifier.span)
        line.add("peer", value: exchange.peer)
        if let client { line.add("client", value: client) }
        let request = original?.request ?? exchange.request
        if original != nil { line.add("decide", value: "yes") }
        if let trace = tracer.traceID(of: self, request: request) {
            line.add("trace", value: trace.text)
        }
        if tracer.rules.rule == .continue, let field = request.value(of: .xRequestID),
            field.count <= RequestEvent.longestRequestID
        {
            let value = request.head.span.extracting(field.range)
            if BearerTokenScanner.find(in: value) == nil { line.add("request_id", value: value) }
        }
        if !request.method.isEmpty {
            let method = request.head.span.extracting(request.method.range)
            line.add("method", value: method.extracting(0..<min(method.count, RequestEvent.longestMethod)))
            let whole = request.head.span.extracting(request.path.range)
            // Before the path is cut, because the scanner does not recognize a part of a token.
            if let redacted = BearerTokenScanner.redacted(whole) {
                let count = min(redacted.count, RequestEvent.longestPath)
                line.add("path", value: redacted.span.extracting(0..<count))
            } else {
                line.add("path", value: whole.extracting(0..<min(whole.count, RequestEvent.longestPath)))
            }
            if whole.count > RequestEvent.longestPath { line.add("path_bytes", value: whole.count) }
        }
        line.add("status", value: exchange.answeredStatus ?? 0)
        line.add("code", value: cause(on: exchange).name)
        if isRepeated { line.add("repeated", value: "yes") }
        if let refusal, !refusal.detail.isEmpty || !refusal.remedy.isEmpty {
            let detail = [refusal.detail, refusal.remedy].filter { !$0.isEmpty }.joined(separator: ": ")
            // The text in place of a key id or a name may be a token that was put there by mistake.
            let bytes = Array(detail.utf8)
            line.add(
                "detail",
                value: BearerTokenScanner.redacted(bytes.span).map { String(decoding: $0, as: UTF8.self) }
                    ?? detail)
        }
        if let passage {
            line.add("app", value: passage.app)
            if let release = passage.release {
                line.add(
                    judgement.provenRelease == nil ? "claimed_release" : "release",
                    value: release.id.description)
            }
            if case .observed(let code) = passage.cause { line.add("verdict", value: code.name) }
        }
        if let release = caller?.release {
            line.add("app", value: release.app)
            line.add("release", value: release.id.description)
            line.add("scheme", value: caller?.schemeName ?? release.scheme.rawValue)
        }
        if let observed = caller?.observed { line.add("verdict", value: observed.name) }
        if let session = caller?.session {
            line.add("account", value: Int(session.account.number))
            line.add("session", value: session.id.description)
        }
        if caller == nil, passage == nil { addClaims(judgement, to: &line) }
        // An upgrade to another protocol ends here, and the backend answers the request without it.
        if isAdmitted, request.names.contains(.connection), request.value(of: "upgrade") != nil {
            line.add("dropped", value: "upgrade")
        }
        line.add("bytes", value: exchange.answeredBytes)
        line.add("us", value: Int(nanoseconds / 1_000))
        line.end()
        return line.bytes
    }

    /// Adds what is known about the caller of a refused request, or of a legacy client's call. Claims without
    /// proof have their own field names, because another caller may have sent them.
    private func addClaims(_ judgement: Judgement, to line: inout JSONLine) {
        if let release = judgement.release {
            let isProven = judgement.proof != nil
            line.add(isProven ? "app" : "claimed_app", value: release.app)
            line.add(
                judgement.provenRelease == nil ? "claimed_release" : "release", value: release.id.description)
            line.add("scheme", value: release.scheme.rawValue)
            guard let session = judgement.tokenSession ?? judgement.session else { return }
            if isProven { line.add("account", value: Int(session.account.number)) }
            line.add(isProven ? "session" : "claimed_session", value: session.id.description)
            return
        }
        switch unsignedParty {
        case .release(let release):
            line.add("app", value: release.app)
            line.add("claimed_release", value: release.id.description)
        case .app(let name): line.add("app", value: name)
        case .unknown, nil: break
        }
    }

    /// What the request is counted for; nil if neither a proof, a passage nor a legacy client's call
    /// identifies it.
    var party: CountedParty? {
        if let caller { return .release(caller.release) }
        if let passage { return passage.release.map { .release($0) } ?? .app(passage.app) }
        return unsignedParty
    }

    /// The outcome of a request whose response was delivered.
    var deliveredOutcome: MeterOutcome {
        if let caller {
            if let observed = caller.observed { return .observed(observed) }
            return caller.bearsTicket
                ? .acceptedByTicket : caller.edition == .next ? .acceptedUnderNextKey : .accepted
        }
        return switch passage?.cause {
        case nil: .accepted
        case .open: .open
        case .observed(let code): .observed(code)
        }
    }

    /// How the event ended, as the log names it.
    private func cause(on exchange: any Exchange) -> RefusalSampler.Cause {
        if let failure { return .failed(failure) }
        if let refusal { return .refused(refusal.code) }
        return .answered(status: exchange.answeredStatus ?? 0)
    }

    /// ``cause(on:)`` as text.
    func outcome(on exchange: any Exchange) -> String { cause(on: exchange).name }

    /// How the sampler counts the event.
    func subject(of exchange: any Exchange) -> RefusalSampler.Subject {
        RefusalSampler.Subject(cause: cause(on: exchange), address: exchange.source.address)
    }

    /// The most bytes of a path in a log line or a span.
    static let longestPath = 512

    /// The most bytes of a method that are logged.
    static let longestMethod = 64

    /// Longer values of `X-Request-Id` are not logged.
    private static let longestRequestID = 128

    /// The monotonic clock.
    static func nanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

extension Caller {
    /// The party that the request counts to. A bearer session is known only here, because no key names it.
    var proof: CallerProof { session.map { .session(account: $0.account.number) } ?? .release }
}

extension Judgement {
    /// What the request has proved about the caller; nil as long as no signature was verified and no token
    /// alone is a live one. A later refusal, such as `replayed` or `session-required`, takes none of it away.
    var proof: CallerProof? {
        if let tokenSession { return .session(account: tokenSession.account.number) }
        guard signer != nil else { return nil }
        return session.map { .session(account: $0.account.number) } ?? .release
    }

    /// The release whose key has verified the signature. A token proves a session, and no release.
    var provenRelease: AppRelease? { signer == nil ? nil : release }
}

/// A request that a proxy asked about. A class, so that other events reserve no space for it.
final class DecideSubject {
    let request: Request

    init(_ request: Request) { self.request = request }
}

/// The wall clock as log lines show it, RFC 3339 with milliseconds; the date is computed once a second.
struct LogClock {
    private var second = -1
    private var prefix = ""

    mutating func text() -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        if now.tv_sec != second {
            second = now.tv_sec
            var parts = tm()
            gmtime_r(&second, &parts)
            prefix =
                "\(LogClock.padded(parts.tm_year + 1900, to: 4))-\(LogClock.padded(parts.tm_mon + 1, to: 2))-"
                + "\(LogClock.padded(parts.tm_mday, to: 2))T\(LogClock.padded(parts.tm_hour, to: 2)):"
                + "\(LogClock.padded(parts.tm_min, to: 2)):\(LogClock.padded(parts.tm_sec, to: 2))."
        }
        return prefix + LogClock.padded(Int32(truncatingIfNeeded: now.tv_nsec / 1_000_000), to: 3) + "Z"
    }

    private static func padded(_ number: Int32, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

/// Identifies one event, in an answer and in the log: a UUID of version 4. Source: RFC 9562 §5.4.
struct EventID {
    private let high: UInt64
    private let low: UInt64

    /// Not secret, so the loop's own fast generator suffices.
    init(_ generator: inout SplitMix64) {
        high = generator.next() & ~0xF000 | 0x4000
        low = generator.next() & ~(0b11 << 62) | 0b10 << 62
    }

    /// The text's bytes: 36 digits and hyphens.
    var bytes: InlineArray<36, UInt8> {
        var text = InlineArray<36, UInt8>(repeating: UInt8(ascii: "-"))
        var span = text.mutableSpan
        span.withUnsafeMutableBytes(write)
        return text
    }

    /// Writes the text to 36 bytes.
    func write(to text: UnsafeMutableRawBufferPointer) {
        let words = (
            EventID.digits(of: high >> 32), EventID.digits(of: high), EventID.digits(of: low >> 32),
            EventID.digits(of: low)
        )
        let hyphen = UInt8(ascii: "-")
        text.storeBytes(of: words.0, as: UInt64.self)
        text.storeBytes(of: hyphen, toByteOffset: 8, as: UInt8.self)
        text.storeBytes(of: UInt32(truncatingIfNeeded: words.1), toByteOffset: 9, as: UInt32.self)
        text.storeBytes(of: hyphen, toByteOffset: 13, as: UInt8.self)
        text.storeBytes(of: UInt32(truncatingIfNeeded: words.1 >> 32), toByteOffset: 14, as: UInt32.self)
        text.storeBytes(of: hyphen, toByteOffset: 18, as: UInt8.self)
        text.storeBytes(of: UInt32(truncatingIfNeeded: words.2), toByteOffset: 19, as: UInt32.self)
        text.storeBytes(of: hyphen, toByteOffset: 23, as: UInt8.self)
        text.storeBytes(of: UInt32(truncatingIfNeeded: words.2 >> 32), toByteOffset: 24, as: UInt32.self)
        text.storeBytes(of: words.3, toByteOffset: 28, as: UInt64.self)
    }

    /// The eight hexadecimal digits of the low half of `word`, the first one in the lowest byte.
    private static func digits(of word: UInt64) -> UInt64 {
        // Spreads the digits over the bytes, the highest one last.
        var digits = word & 0xFFFF_FFFF
        digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
        digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
        digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
        // One in each byte of a digit over 9.
        let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        let text = digits &+ 0x3030_3030_3030_3030 &+ letters &* UInt64(UInt8(ascii: "a") - 10 - 0x30)
        return text.bigEndian
    }

    var text: String {
        let bytes = bytes
        return bytes.span.text
    }
}
