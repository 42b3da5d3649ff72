import CountersignAuthority
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire

/// What the gateway does with the trace context of a request, and where it reports its own part of traces.
/// Source: docs/decisions/0085-tracing.md.
public struct TraceSettings: Sendable, Equatable {
    /// What becomes of the context that a caller states.
    public enum ContextRule: String, Sendable, CaseIterable {
        /// It goes on to the backend.
        case `continue`
        /// It is removed, and another trace begins.
        case restart
    }

    /// What becomes of the context that a caller states.
    public var rule = ContextRule.continue
    /// One in so many traces is sampled.
    public var sample = 1
    /// Traces a second that are sampled because a verified caller asks for it.
    var callers = 20
    /// Receives the spans; nil for none.
    package var collector: TraceCollector?
    /// A file of field lines that are sent to the collector, such as its `Authorization`.
    public var fieldFile: String?

    /// The defaults.
    public init() {}
}

/// The URL at which a collector takes spans, as OTLP over HTTP. Source: OTLP 1.x, "OTLP/HTTP Request".
package struct TraceCollector: Sendable, Equatable {
    package let origin: Origin
    package let path: String

    /// From `http[s]://HOST[:PORT][/PATH]`; without a path, OTLP's own for traces. Nil for other texts.
    package init?(_ text: String) {
        guard let url = ServiceURL(text, parameters: []), url.user == nil,
            url.scheme == "https" || url.scheme == "http",
            let (name, port) = HostPort.split(String(url.hosts)), port != 0,
            let host = try? Trust.Host(name)
        else { return nil }
        let path = "/\(url.path ?? "")"
        guard path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        origin = Origin(url.scheme == "https" ? .tls : .plaintext, host: host, port: port ?? 0)
        self.path = path == "/" ? "/v1/traces" : path
    }

    /// The whole URL.
    package var text: String { "\(origin)\(path)" }
}

extension Setting {
    static let tracing: [Setting] = [
        Setting(
            "trace-context", placeholder: "RULE",
            meaning:
                "the trace context of callers (traceparent, tracestate, baggage, x-request-id): `continue` "
                + "it, or `restart`, which removes it and begins another trace",
            expected: "continue or restart",
            kind: .choice(TraceSettings.ContextRule.allCases.map(\.rawValue)), effect: .onReload,
            set: { configuration, text in
                TraceSettings.ContextRule(rawValue: text).map { configuration.tracing.rule = $0 }
            },
            show: { .string($0.tracing.rule.rawValue) }),
        number(
            "trace-sample", at: \.tracing.sample, in: 1...1_000_000_000, unit: .count, effect: .onReload,
            meaning: "one in so many traces that begin at the gateway is sampled"),
        number(
            "trace-callers", at: \.tracing.callers, in: 0...1_000_000, unit: .count, effect: .onReload,
            meaning: "traces a second that are sampled because a verified caller's context says so"),
        Setting(
            "trace-export", placeholder: "URL",
            meaning:
                "the collector that receives the spans of sampled requests, by OTLP over HTTP; `off` for "
                + "none",
            expected: "http://HOST[:PORT][/PATH], https://HOST[:PORT][/PATH], or off",
            kind: .text(["off"]), effect: .onRestart,
            set: { configuration, text in
                if text == "off" { return configuration.tracing.collector = nil }
                return TraceCollector(text).map { configuration.tracing.collector = $0 }
            },
            show: { .string($0.tracing.collector?.text ?? "off") }),
        Setting(
            "trace-export-fields", placeholder: "FILE",
            meaning: "a file of lines `NAME: VALUE` that the collector receives as fields, such as its "
                + "Authorization (default: none)",
            expected: "the path of a file",
            kind: .file, effect: .onRestart,
            set: { $0.tracing.fieldFile = $1 },
            show: { .optional($0.tracing.fieldFile) }),
    ]
}

extension TraceSettings {
    /// Reads ``fieldFile``, which other users must not be able to read. Lines that are empty or begin with
    /// `#` are left out.
    func readFields() throws(OperationalError) -> [HeaderField] {
        guard let path = fieldFile else { return [] }
        guard let secret = try KeyFile.read(path) else {
            throw OperationalError(.failed, message: "--trace-export-fields: \(path): no such file")
        }
        let lines = secret.withExposedBytes { TraceSettings.lines(of: $0) }
        var fields: [HeaderField] = []
        for (index, line) in lines.enumerated() {
            let text = TraceSettings.trimmed(line[...])
            guard let first = text.first, first != UInt8(ascii: "#") else { continue }
            guard let field = TraceSettings.field(in: text) else {
                throw OperationalError(
                    .failed,
                    message: "--trace-export-fields: \(path): line \(index + 1): expected NAME: VALUE, of a "
                        + "field that does not frame the message")
            }
            fields.append(field)
        }
        return fields
    }

    private static func lines(of bytes: Span<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = [[]]
        for index in 0..<bytes.count {
            if bytes[index] == UInt8(ascii: "\n") {
                lines.append([])
            } else {
                lines[lines.count - 1].append(bytes[index])
            }
        }
        return lines
    }

    /// Nil for a line of another form, and for a field that the transport writes itself.
    private static func field(in line: ArraySlice<UInt8>) -> HeaderField? {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), let host = try? Trust.Host("localhost")
        else { return nil }
        let field = HeaderField(
            String(decoding: line[..<colon], as: UTF8.self), bytes: Array(trimmed(line[(colon + 1)...])))
        let request = OutgoingRequest(
            "POST", origin: Origin(.tls, host: host), target: "/", fields: [field])
        return request.flaw == nil ? field : nil
    }

    private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        return line.drop(while: isSpace).reversed().drop(while: isSpace).reversed()[...]
    }
}
