/// `multipart/form-data`, read strictly. Source: RFC 7578; boundaries: RFC 2046 §5.1.1.
///
/// Refuses everything that two parsers in use could interpret differently: a delimiter that is not a whole
/// line, text before the first or after the last delimiter, a part's field that is not listed here, escapes
/// in names, a repeated name.
package enum Multipart {
    /// One part: its name and its content, by their offsets in the body.
    package struct Part: BitwiseCopyable, Sendable {
        package enum Kind: BitwiseCopyable, Sendable { case field, file }

        package var name: ByteRange
        package var content: ByteRange
        package var kind: Kind
    }

    /// Fields and files together.
    package static let mostParts = 256
    package static let mostFiles = 32
    /// Bytes of a part's own fields, with their line ends.
    package static let mostHeadBytes = 1_024
    package static let mostNameBytes = 128
    package static let mostFileNameBytes = 255

    /// The parts in their order: at least one. No two have the same name, and no file has a name that a
    /// parser which folds names could take for a field's.
    package static func read(_ body: Span<UInt8>, between boundary: Boundary) throws(ParseError) -> [Part] {
        var parts: [Part] = []
        guard boundary.find(in: body, from: 0) == 0 else {
            throw ParseError(offset: 0, reason: "expected the boundary at the start")
        }
        var position = boundary.delimiter.count
        while true {
            if areDashes(at: position, of: body), !parts.isEmpty {
                try checkEnd(position + 2, of: body)
                try checkNames(of: parts, in: body)
                return parts
            }
            guard isLineEnd(at: position, of: body) else {
                throw ParseError(
                    offset: position,
                    reason: "expected a line end behind the boundary, or -- behind the last one")
            }
            guard parts.count < mostParts else {
                throw ParseError(offset: position, reason: "expected at most \(mostParts) parts")
            }
            // From here, so that a delimiter inside the part's own fields is found too.
            let next = boundary.find(in: body, from: position)
            let head = try PartHead(at: position + 2, of: body)
            guard let next else {
                throw ParseError(offset: body.count, reason: "expected the closing boundary")
            }
            guard next - 2 >= head.end, isLineEnd(at: next - 2, of: body) else {
                throw ParseError(offset: next, reason: "expected a line of its own for the boundary")
            }
            parts.append(try head.part(upTo: next - 2))
            position = next + boundary.delimiter.count
        }
    }

    private static func areDashes(at index: Int, of body: Span<UInt8>) -> Bool {
        index >= 0 && body.count - index >= 2 && body[index] == dash && body[index + 1] == dash
    }

    private static func isLineEnd(at index: Int, of body: Span<UInt8>) -> Bool {
        index >= 0 && body.count - index >= 2 && body[index] == carriageReturn && body[index + 1] == lineFeed
    }

    /// The last line may lack its line end; nothing else may follow.
    private static func checkEnd(_ index: Int, of body: Span<UInt8>) throws(ParseError) {
        if index == body.count { return }
        guard body.count - index == 2, isLineEnd(at: index, of: body) else {
            throw ParseError(offset: index, reason: "expected nothing behind the closing boundary")
        }
    }

    private static func checkNames(of parts: [Part], in body: Span<UInt8>) throws(ParseError) {
        var names: Set<[UInt8]> = []
        var fields: Set<[UInt8]> = []
        var files = 0
        for part in parts {
            let name = body.extracting(part.name.range)
            guard names.insert(name.withUnsafeBufferPointer { Array($0) }).inserted else {
                throw ParseError(offset: Int(part.name.start), reason: "expected each name once")
            }
            if part.kind == .field { fields.insert(folded(name)) }
        }
        for part in parts where part.kind == .file {
            files += 1
            guard files <= mostFiles else {
                throw ParseError(offset: Int(part.name.start), reason: "expected at most \(mostFiles) files")
            }
            guard !fields.contains(folded(body.extracting(part.name.range))) else {
                throw ParseError(
                    offset: Int(part.name.start), reason: "expected a file's name that is like no field's")
            }
        }
    }

    /// A name as lenient parsers read it: without case, `.` as `_` (PHP), and up to its first `[`.
    package static func folded(_ name: Span<UInt8>) -> [UInt8] {
        var folded: [UInt8] = []
        for index in 0..<name.count {
            let byte = name[index]
            if byte == UInt8(ascii: "["), index > 0 { break }
            folded.append(byte == UInt8(ascii: ".") ? UInt8(ascii: "_") : ASCII.lowercased(byte))
        }
        return folded
    }

    static let dash = UInt8(ascii: "-")
    static let carriageReturn: UInt8 = 0x0D
    static let lineFeed: UInt8 = 0x0A
}

extension Multipart.Boundary {
    /// The boundary in the request's `Content-Type`; nil if there are several such fields, or if the value
    /// is not of the accepted form.
    package init?(in request: Request) {
        guard let type = request.value(of: .contentType) else { return nil }
        self.init(contentType: request.head.span.extracting(type.range))
    }
}

extension Multipart {
    /// The delimiter between the parts, as the `Content-Type` states it.
    package struct Boundary: Sendable {
        /// With the two dashes before it: 3 to 72 bytes.
        package let delimiter: [UInt8]
        /// For each prefix of the delimiter, how long the prefix is that it also ends in: so that no body,
        /// however it is made, is searched in more than linear time. Source: Knuth, Morris and Pratt.
        private let borders: [UInt8]

        /// `multipart/form-data; boundary=…`, and nothing else; nil for any other value. Without quotes the
        /// boundary has letters, digits and `'+_-.`, within quotes all that RFC 2046 allows but spaces and
        /// commas: there readers agree.
        package init?(contentType type: Span<UInt8>) {
            let media: StaticString = "multipart/form-data"
            let mark: StaticString = "boundary="
            var index = media.utf8CodeUnitCount
            guard type.count > index, type.extracting(0..<index).matchesWithoutCase(media) else { return nil }
            guard type[index] == UInt8(ascii: ";") else { return nil }
            index += 1
            while index < type.count, type[index] == UInt8(ascii: " ") { index += 1 }
            let valueStart = index + mark.utf8CodeUnitCount
            guard type.count > valueStart, type.extracting(index..<valueStart).matches(mark) else {
                return nil
            }
            var value = valueStart..<type.count
            let isQuoted = type[valueStart] == UInt8(ascii: "\"")
            if isQuoted {
                guard value.count > 2, type[type.count - 1] == UInt8(ascii: "\"") else { return nil }
                value = (valueStart + 1)..<(type.count - 1)
            }
            guard (1...70).contains(value.count) else { return nil }
            var delimiter = [Multipart.dash, Multipart.dash]
            for index in value {
                guard Boundary.isAllowed(type[index], quoted: isQuoted) else { return nil }
                delimiter.append(type[index])
            }
            self.delimiter = delimiter
            borders = Boundary.borders(of: delimiter)
        }

        private static func isAllowed(_ byte: UInt8, quoted isQuoted: Bool) -> Bool {
            if ASCII.isLetter(byte) || ASCII.isDigit(byte) { return true }
            switch byte {
            case UInt8(ascii: "'"), UInt8(ascii: "+"), UInt8(ascii: "_"), UInt8(ascii: "-"),
                UInt8(ascii: "."):
                return true
            case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "/"), UInt8(ascii: ":"),
                UInt8(ascii: "="),
                UInt8(ascii: "?"):
                return isQuoted
            default: return false
            }
        }

        private static func borders(of delimiter: [UInt8]) -> [UInt8] {
            var borders = [UInt8](repeating: 0, count: delimiter.count)
            var length = 0
            for index in delimiter.indices.dropFirst() {
                while length > 0, delimiter[index] != delimiter[length] { length = Int(borders[length - 1]) }
                if delimiter[index] == delimiter[length] { length += 1 }
                borders[index] = UInt8(truncatingIfNeeded: length)
            }
            return borders
        }

        /// The next offset of the delimiter at or after `start`; nil if there is none.
        func find(in text: Span<UInt8>, from start: Int) -> Int? {
            var matched = 0
            var index = start
            while index < text.count {
                if matched == 0 {
                    guard let first = text.firstIndex(of: Multipart.dash, from: index) else { return nil }
                    index = first
                }
                while matched > 0, delimiter[matched] != text[index] { matched = Int(borders[matched - 1]) }
                if delimiter[matched] == text[index] { matched += 1 }
                index += 1
                if matched == delimiter.count { return index - matched }
            }
            return nil
        }
    }
}
