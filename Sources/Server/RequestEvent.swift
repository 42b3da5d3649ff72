import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire
import Glibc

/// What is written about one request: who, what, how it ended. Never a secret, a query or a body.
struct RequestEvent {
    let id: EventID
    private let began: UInt64
    var caller: Caller?
    var refusal: Refusal?
    /// Why it went on although it proved nothing.
    var passage: Passage?
    /// What a proxy asked about, where the request itself only asks.
    var original: AskedRequest?
    /// Whether a password that an old client sent was right: such a client signs nothing.
    var isSignedIn = false

    /// Whether anything was proved about the caller. Lines of others are sampled.
    var isProven: Bool { caller != nil || isSignedIn }

    init(id: EventID) {
        self.id = id
        began = RequestEvent.nanoseconds()
    }

    /// One JSON line, written over `buffer`. `client` is whom a trusted proxy names.
    func line(
        for exchange: any Exchange, from client: String?, clock: inout LogClock, reusing buffer: consuming [UInt8]
    ) -> [UInt8] {
        buffer.removeAll(keepingCapacity: true)
        var line = JSONLine(reusing: buffer)
        line.add("time", clock.text())
        line.add("event", id.bytes.span)
        line.add("peer", exchange.peer)
        if let client { line.add("client", client) }
        let request = original?.request ?? exchange.request
        if original != nil { line.add("decide", "yes") }
        if !request.method.isEmpty {
            line.add("method", request.head.span.extracting(request.method.range))
            let path = request.head.span.extracting(request.path.range)
            if let redacted = StrayToken.redacted(path) {
                line.add("path", redacted.span)
            } else {
                line.add("path", path)
            }
        }
        line.add("status", exchange.answeredStatus ?? 0)
        line.add("code", refusal?.code.name ?? "ok")
        if let detail = refusal?.detail, !detail.isEmpty {
            // What was sent as a key id, or as a name, may be a token that took the wrong place.
            let bytes = Array(detail.utf8)
            line.add("detail", StrayToken.redacted(bytes.span).map { String(decoding: $0, as: UTF8.self) } ?? detail)
        }
        if let passage {
            line.add("app", passage.app)
            if let release = passage.release { line.add("release", release.id.description) }
            if case .observed(let code) = passage.cause { line.add("verdict", code.name) }
        }
        if let release = caller?.release {
            line.add("app", release.app)
            line.add("release", release.id.description)
            line.add("scheme", caller?.schemeName ?? release.scheme.rawValue)
        }
        if let session = caller?.session {
            line.add("account", Int(session.account.number))
            line.add("session", session.id.description)
        }
        line.add("bytes", exchange.answeredBytes)
        line.add("us", Int((RequestEvent.nanoseconds() - began) / 1_000))
        line.end()
        return line.bytes
    }

    /// What the sampler counts it by.
    func subject(of exchange: any Exchange) -> RefusalSampler.Subject {
        let cause = refusal.map { RefusalSampler.Cause.refused($0.code) }
        return RefusalSampler.Subject(
            cause: cause ?? .answered(status: exchange.answeredStatus ?? 0), address: exchange.source.address)
    }

    private static func nanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// A request that a proxy asked about. A class, so that events of others carry no room for it.
final class AskedRequest {
    let request: Request

    init(_ request: Request) { self.request = request }
}

/// The wall clock as log lines show it, RFC 3339 with milliseconds; the date is worked out once a second.
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
                "\(LogClock.padded(parts.tm_year + 1900, 4))-\(LogClock.padded(parts.tm_mon + 1, 2))-\(LogClock.padded(parts.tm_mday, 2))"
                + "T\(LogClock.padded(parts.tm_hour, 2)):\(LogClock.padded(parts.tm_min, 2)):\(LogClock.padded(parts.tm_sec, 2))."
        }
        return prefix + LogClock.padded(Int32(truncatingIfNeeded: now.tv_nsec / 1_000_000), 3) + "Z"
    }

    private static func padded(_ number: Int32, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}
