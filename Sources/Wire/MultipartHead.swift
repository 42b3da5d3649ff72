extension Multipart {
    /// A part's own fields: `Content-Disposition`, and where they are there `Content-Type` and
    /// `Content-Length`, each once.
    struct PartHead {
        /// Where the content begins.
        let end: Int
        private var name = ByteRange.empty
        private var kind = Part.Kind.field
        /// The length that the part states, with the place of the statement.
        private var length: (count: Int, at: Int)?

        /// Reads from `start` to the empty line.
        init(at start: Int, of body: Span<UInt8>) throws(ParseError) {
            let limit = min(body.count, start + Multipart.mostHeadBytes)
            var disposition: ByteRange?
            var type: ByteRange?
            var position = start
            while true {
                let line = try PartHead.line(at: position, before: limit, of: body)
                position = Int(line.end) + 2
                if line.isEmpty { break }
                let (field, value) = try PartHead.split(line, of: body)
                let text = body.extracting(field.range)
                if text.matchesWithoutCase("content-disposition"), disposition == nil {
                    disposition = value
                } else if text.matchesWithoutCase("content-type"), type == nil {
                    type = value
                } else if text.matchesWithoutCase("content-length"), length == nil {
                    length = (try PartHead.number(value, of: body), Int(value.start))
                } else {
                    throw ParseError(
                        offset: Int(field.start),
                        reason: "expected Content-Disposition, Content-Type or Content-Length, each once")
                }
            }
            end = position
            guard let disposition else {
                throw ParseError(offset: start, reason: "expected Content-Disposition")
            }
            try read(disposition, of: body)
            if let type { try check(type, of: body) }
        }

        /// The part whose content ends at `contentEnd`.
        func part(upTo contentEnd: Int) throws(ParseError) -> Part {
            if let length, length.count != contentEnd - end {
                throw ParseError(offset: length.at, reason: "expected the part's length, or none")
            }
            return Part(name: name, content: ByteRange(from: end, to: contentEnd), kind: kind)
        }

        // MARK: Lines

        /// The line without its end, which is CRLF.
        private static func line(at start: Int, before limit: Int, of body: Span<UInt8>)
            throws(ParseError)
            -> ByteRange
        {
            var index = start
            while index < limit, body[index] != Multipart.carriageReturn {
                guard body[index] >= 0x20, body[index] != 0x7F else {
                    throw ParseError(
                        offset: index, reason: "expected no control characters in a part's fields")
                }
                index += 1
            }
            guard index + 1 < limit, body[index + 1] == Multipart.lineFeed else {
                throw ParseError(
                    offset: index,
                    reason:
                        "expected an empty line behind a part's fields, of \(Multipart.mostHeadBytes) bytes "
                        + "at most"
                )
            }
            return ByteRange(from: start, to: index)
        }

        /// Name and value, at the first colon; spaces before the value are left out.
        private static func split(_ line: ByteRange, of body: Span<UInt8>) throws(ParseError) -> (
            field: ByteRange, value: ByteRange
        ) {
            let text = body.extracting(line.range)
            guard let colon = text.firstIndex(of: UInt8(ascii: ":"), from: 0), colon > 0 else {
                throw ParseError(offset: Int(line.start), reason: "expected a field of the part")
            }
            var start = colon + 1
            while start < text.count, text[start] == UInt8(ascii: " ") { start += 1 }
            let base = Int(line.start)
            return (
                ByteRange(from: base, to: base + colon), ByteRange(from: base + start, to: base + text.count)
            )
        }

        private static func number(_ value: ByteRange, of body: Span<UInt8>) throws(ParseError) -> Int {
            var number = 0
            guard (1...9).contains(value.count) else {
                throw ParseError(offset: Int(value.start), reason: "expected a length")
            }
            for index in value.range {
                guard ASCII.isDigit(body[index]) else {
                    throw ParseError(offset: index, reason: "expected a length")
                }
                number = number * 10 + Int(body[index] - UInt8(ascii: "0"))
            }
            return number
        }

        // MARK: Values

        /// `form-data; name="…"`, and for a file `; filename="…"`: all clients write this form, and all
        /// servers read it alike.
        private mutating func read(_ disposition: ByteRange, of body: Span<UInt8>) throws(ParseError) {
            var index = Int(disposition.start)
            let end = Int(disposition.end)
            try PartHead.skip("form-data; name=\"", from: &index, before: end, of: body)
            name = try PartHead.quoted(from: &index, before: end, atMost: Multipart.mostNameBytes, of: body)
            if index < end {
                kind = .file
                try PartHead.skip("; filename=\"", from: &index, before: end, of: body)
                _ = try PartHead.quoted(
                    from: &index, before: end, atMost: Multipart.mostFileNameBytes, of: body)
            }
            guard index == end else {
                throw ParseError(offset: index, reason: "expected nothing behind the names")
            }
            for index in name.range where !PartHead.isOfName(body[index], of: kind) {
                throw ParseError(
                    offset: index, reason: "expected a name of characters that no reader escapes")
            }
            // It would change how parsers decode the other parts. Source: RFC 7578 §4.6.
            if body.extracting(name.range).matchesWithoutCase("_charset_") {
                throw ParseError(offset: Int(name.start), reason: "expected no _charset_")
            }
        }

        private static func skip(
            _ text: StaticString, from index: inout Int, before end: Int, of body: Span<UInt8>
        ) throws(ParseError) {
            let next = index + text.utf8CodeUnitCount
            guard next <= end, body.extracting(index..<next).matches(text) else {
                throw ParseError(
                    offset: index, reason: "expected form-data; name=\"…\", or that and ; filename=\"…\"")
            }
            index = next
        }

        /// The text before the closing quote, which is not consumed: without characters that some parsers
        /// treat as an escape or as the end of a parameter.
        private static func quoted(
            from index: inout Int, before end: Int, atMost most: Int, of body: Span<UInt8>
        ) throws(ParseError) -> ByteRange {
            let start = index
            while index < end, body[index] != UInt8(ascii: "\"") {
                guard body[index] != UInt8(ascii: "\\"), body[index] != UInt8(ascii: ";") else {
                    throw ParseError(offset: index, reason: "expected no \\ and no ; in a name")
                }
                index += 1
            }
            guard index < end, (1...most).contains(index - start) else {
                throw ParseError(offset: start, reason: "expected 1 to \(most) bytes in quotes")
            }
            let slice = ByteRange(from: start, to: index)
            index += 1
            return slice
        }

        /// Visible ASCII; a file's name, which is listed to the backend, has letters, digits and `_-.[]`.
        private static func isOfName(_ byte: UInt8, of kind: Part.Kind) -> Bool {
            if ASCII.isLetter(byte) || ASCII.isDigit(byte) { return true }
            switch byte {
            case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "["),
                UInt8(ascii: "]"):
                return true
            case UInt8(ascii: "%"), UInt8(ascii: "&"), UInt8(ascii: "="), UInt8(ascii: "'"): return false
            default: return kind == .field && byte > 0x20 && byte < 0x7F
            }
        }

        /// A field is `text/plain` and names no charset, in which readers would decode it; a file is no
        /// multipart of its own.
        private func check(_ type: ByteRange, of body: Span<UInt8>) throws(ParseError) {
            let text = body.extracting(type.range)
            guard kind == .file else {
                guard text.matchesWithoutCase("text/plain") else {
                    throw ParseError(
                        offset: Int(type.start), reason: "expected text/plain or no Content-Type for a field")
                }
                return
            }
            for index in 0..<text.count where text[index] >= 0x7F {
                throw ParseError(offset: Int(type.start) + index, reason: "expected a Content-Type in ASCII")
            }
            guard !text.isEmpty, !PartHead.begins(text, with: "multipart/"),
                !PartHead.begins(text, with: "message/")
            else { throw ParseError(offset: Int(type.start), reason: "expected no message inside the part") }
        }

        private static func begins(_ text: Span<UInt8>, with prefix: StaticString) -> Bool {
            let count = prefix.utf8CodeUnitCount
            return text.count >= count && text.extracting(0..<count).matchesWithoutCase(prefix)
        }
    }
}
