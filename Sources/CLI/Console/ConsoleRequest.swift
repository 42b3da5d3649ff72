import CountersignHTTP
import CountersignServer
import CountersignWire

/// A request to the console, with its names and values decoded.
struct ConsoleRequest: Sendable {
    enum Method: Sendable {
        case read
        /// The form that was sent.
        case submit([String: String])
    }

    let method: Method
    /// Below `/console`; empty for the first page.
    let segments: [String]
    let query: [String: String]

    /// The value of a query member; empty without it.
    func value(_ name: String) -> String { query[name] ?? "" }

    /// Names and values of a query or a form. Each name may stand once. Source: WHATWG URL §5.1.
    static func pairs(in text: [UInt8]) throws(APIProblem) -> [String: String] {
        var pairs: [String: String] = [:]
        var reader = Form.Reader()
        let malformed = APIProblem(400, code: "invalid", detail: "the form or the query is malformed")
        do throws(ParseError) {
            while let pair = try reader.next(in: text.span) {
                var buffer = ByteBuffer(capacity: pair.name.count + pair.value.count)
                let name = try Form.decode(pair.name, of: text.span, into: &buffer)
                let value = try Form.decode(pair.value, of: text.span, into: &buffer)
                let decoded = buffer.array
                let key = String(decoding: decoded[name.range], as: UTF8.self)
                guard pairs[key] == nil else {
                    throw ParseError(offset: 0, reason: "expected each name once")
                }
                pairs[key] = String(decoding: decoded[value.range], as: UTF8.self)
            }
        } catch {
            throw malformed
        }
        return pairs
    }
}

extension Request {
    /// The value of a cookie of that name; nil without one, and if it is sent twice. Source: RFC 6265 §5.4.
    func cookie(_ name: String) -> String? {
        guard let field = value(of: "cookie") else { return nil }
        var found: [String] = []
        for pair in head.span.extracting(field.range).text.split(separator: ";") {
            let trimmed = pair.drop { $0 == " " }
            guard trimmed.hasPrefix("\(name)=") else { continue }
            found.append(String(trimmed.dropFirst(name.utf8.count + 1)))
        }
        return found.count == 1 ? found[0] : nil
    }

    /// Whether a browser says that a page of this very origin has sent the request. Browsers that send
    /// neither field are refused: all that are alive send one with each form. Source: Fetch Metadata, Fetch
    /// §3.2.
    func isSentByOwnPage(at host: String, isEncrypted: Bool) -> Bool {
        if let site = value(of: "sec-fetch-site") {
            return head.span.extracting(site.range).text == "same-origin"
        }
        guard let origin = value(of: "origin") else { return false }
        return head.span.extracting(origin.range).text == (isEncrypted ? "https://" : "http://") + host
    }
}

/// Paths of the console. Each part is encoded, so that a name is one segment whatever it contains.
///
/// Browsers resolve the segments `.` and `..`, also in percent-encoding: a name of that kind gets a `~` in
/// front, and so does one that reads as if it had got one. Source: WHATWG URL §4.4.
enum ConsolePath {
    private static let mark = UInt8(ascii: "~")

    /// Whether the name is `.` or `..`, behind any number of marks.
    private static func isDots(_ name: String) -> Bool {
        let dots = name.utf8.drop { $0 == mark }
        return (1...2).contains(dots.count) && dots.allSatisfy { $0 == UInt8(ascii: ".") }
    }

    /// The name that a segment, already decoded, stands for.
    static func name(ofSegment segment: String) -> String {
        isDots(segment) && segment.utf8.first == mark ? String(segment.dropFirst()) : segment
    }

    static func path(_ segments: String..., query: [(name: String, value: String)] = []) -> String {
        var bytes = Array("/console".utf8)
        for segment in segments {
            bytes.append(UInt8(ascii: "/"))
            if isDots(segment) { bytes.append(mark) }
            PercentEncoding.encode(Array(segment.utf8).span, into: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self) + ConsolePath.query(query)
    }

    static func query(_ pairs: [(name: String, value: String)]) -> String {
        var bytes: [UInt8] = []
        for (name, value) in pairs {
            bytes.append(bytes.isEmpty ? UInt8(ascii: "?") : UInt8(ascii: "&"))
            PercentEncoding.encode(Array(name.utf8).span, into: &bytes)
            bytes.append(UInt8(ascii: "="))
            PercentEncoding.encode(Array(value.utf8).span, into: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
