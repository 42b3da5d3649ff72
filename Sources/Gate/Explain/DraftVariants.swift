import CZlib
import CountersignWire

/// Small changes to a request that was received, for trying what its signer may have had before it. Each
/// gives the requests that differ, none where the request has no such part.
extension Draft {
    var path: [UInt8] { Array(target[..<(target.firstIndex(of: .question) ?? target.endIndex)]) }

    /// Without the `?`; nil if the target has no `?`.
    var query: [UInt8]? { target.firstIndex(of: .question).map { Array(target[($0 + 1)...]) } }

    /// Lower-case, without parameters; empty without a `Content-Type`.
    var mediaType: String {
        let type = fields.first { $0.name.lowercased() == "content-type" }?.value ?? []
        let end = type.firstIndex { $0 == UInt8(ascii: ";") || $0 == .space } ?? type.endIndex
        return String(decoding: type[..<end], as: UTF8.self).lowercased()
    }

    var isForm: Bool { mediaType == "application/x-www-form-urlencoded" }

    func withPath(_ change: ([UInt8]) -> [[UInt8]]) -> [Draft] {
        let rest = target[(target.firstIndex(of: .question) ?? target.endIndex)...]
        return change(path).filter { !$0.isEmpty && $0 != path }.map { with(\.target, setTo: $0 + rest) }
    }

    /// The query, and where the body is a form, the form.
    func withParameters(_ change: ([UInt8]) -> [[UInt8]]) -> [Draft] {
        var found: [Draft] = []
        if let query {
            found += change(query).filter { $0 != query }.map {
                with(\.target, setTo: path + [.question] + $0)
            }
        }
        if isForm, body.count <= ExplanationBudget.largestBody {
            found += change(body).filter { $0 != body }.map { with(\.body, setTo: $0) }
        }
        return found
    }

    func withAuthority(_ change: (String) -> [String]) -> [Draft] {
        change(authority).filter { !$0.isEmpty && $0 != authority }.map { with(\.authority, setTo: $0) }
    }

    /// Each field's value in its turn.
    func withValue(of name: String? = nil, change: ([UInt8]) -> [[UInt8]]) -> [Draft] {
        fields.indices.filter { name == nil || fields[$0].name.lowercased() == name }.flatMap { index in
            change(fields[index].value).filter { $0 != fields[index].value }.map { value in
                var changed = self
                changed.fields[index].value = value
                return changed
            }
        }
    }

    func with<Value>(_ part: WritableKeyPath<Draft, Value>, setTo value: Value) -> Draft {
        var changed = self
        changed[keyPath: part] = value
        return changed
    }

    /// The one value of that lower-case name; nil if no field has it.
    func value(of name: String) -> [UInt8]? { fields.first { $0.name.lowercased() == name }?.value }
}

extension UInt8 {
    static let question = UInt8(ascii: "?")
    static let slash = UInt8(ascii: "/")
    static let space = UInt8(ascii: " ")
    static let ampersand = UInt8(ascii: "&")
    static let equals = UInt8(ascii: "=")
    static let newline: UInt8 = 0x0A
}

extension [UInt8] {
    init(_ text: String) { self = Array(text.utf8) }

    var text: String { String(decoding: self, as: UTF8.self) }

    func split(at separator: UInt8) -> [[UInt8]] {
        split(separator: separator, omittingEmptySubsequences: false).map { Array($0) }
    }

    /// Each `old` as `new`. The standard library's takes some 50 ns for a byte.
    func replacing(_ old: [UInt8], with new: [UInt8]) -> [UInt8] {
        var (replaced, start): ([UInt8], Int) = ([], 0)
        while let index = span.extracting(start..<count).firstIndex(of: old.span) {
            replaced += self[start..<start + index]
            replaced += new
            start += index + old.count
        }
        return start == 0 ? self : replaced + self[start...]
    }

    /// Without white space at either end.
    var trimmed: [UInt8] {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) })
        else {
            return []
        }
        return Array(self[first...last])
    }
}

/// Bodies as they were before they were compressed. Source: RFC 9110 §8.4.1, gzip and deflate; RFC 1951.
enum Inflate {
    /// What the body stands for by its Content-Encoding; none where it has none, or does not keep to it.
    static func bodies(of draft: Draft) -> [[UInt8]] {
        guard let coding = draft.value(of: "content-encoding")?.text.lowercased() else { return [] }
        switch coding {
        // By the standard deflate has zlib's frame; some send it bare.
        case "gzip", "x-gzip": return [inflate(draft.body, windowBits: 15 + 16)].compactMap { $0 }
        case "deflate": return [15, -15].compactMap { inflate(draft.body, windowBits: $0) }
        default: return []
        }
    }

    /// Nil where `bytes` are not one whole stream of that kind, or would become larger than
    /// ``ExplanationBudget/largestInflatedBody``: a kilobyte may stand for a gigabyte. `windowBits` as zlib
    /// has it: +16 for gzip, negative for bare deflate.
    static func inflate(_ bytes: [UInt8], windowBits: Int32) -> [UInt8]? {
        guard !bytes.isEmpty, bytes.count <= ExplanationBudget.largestInflatedBody else { return nil }
        var stream = z_stream()
        guard cs_inflate_start(&stream, windowBits) == Z_OK else { return nil }
        defer { inflateEnd(&stream) }
        var input = bytes
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        return input.withUnsafeMutableBufferPointer { input -> [UInt8]? in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(truncatingIfNeeded: input.count)
            while true {
                let status = chunk.withUnsafeMutableBufferPointer { chunk in
                    stream.next_out = chunk.baseAddress
                    stream.avail_out = UInt32(truncatingIfNeeded: chunk.count)
                    return CZlib.inflate(&stream, Z_NO_FLUSH)
                }
                let count = chunk.count - Int(stream.avail_out)
                guard output.count + count <= ExplanationBudget.largestInflatedBody else { return nil }
                output += chunk[..<count]
                if status == Z_STREAM_END { return stream.avail_in == 0 ? output : nil }
                // No progress without an error: the stream is cut off.
                guard status == Z_OK, count > 0 else { return nil }
            }
        }
    }
}
