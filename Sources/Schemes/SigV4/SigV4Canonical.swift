import CountersignSeal
import CountersignWire

extension SigV4Space {
    /// Method, path, query, signed fields, their names and the payload's digest, a line each.
    /// Source: AWS Signature Version 4, "Create a canonical request".
    mutating func writeCanonicalRequest(_ request: Request, _ spelling: SigV4Spelling) throws(Refusal) {
        let lineFeed = UInt8(ascii: "\n")
        if spelling == .standard { facts = SpellingFacts() }
        canonical.clear()
        canonical.append(request.head.span.extracting(request.method.range))
        canonical.append(lineFeed)
        facts.hasLostSegments = false
        if spelling == .asWritten || isForS3 { writePathAsWritten(request) } else { try writeStandardPath(request) }
        canonical.append(lineFeed)
        switch spelling {
        case .standard: try writeSortedQuery(request, .anew)
        case .sorted: try writeSortedQuery(request, .kept)
        case .asWritten: writeQueryAsWritten(request)
        }
        canonical.append(lineFeed)
        for field in names { writeField(field, request) }
        canonical.append(lineFeed)
        canonical.append(reading.signedFields, of: words)
        canonical.append(lineFeed)
        switch reading.payload {
        case .field(let value): canonical.append(request.head.span.extracting(value.range))
        case .body: Hex.append(SHA256.digest(request.body.span).span, to: &canonical)
        case .unsigned: canonical.append("UNSIGNED-PAYLOAD")
        }
    }

    /// `name:value`; the values of several lines joined by commas.
    private mutating func writeField(_ field: SignedField, _ request: Request) {
        canonical.append(field.name, of: words)
        canonical.append(UInt8(ascii: ":"))
        var left = field.lines
        var line = field.firstLine
        while left > 0, line < request.fields.count {
            if line == field.firstLine || isNamed(field, line, of: request) {
                if line != field.firstLine { canonical.append(UInt8(ascii: ",")) }
                writeCollapsed(request.head.span.extracting(request.fields[line].value.range))
                left -= 1
            }
            line += 1
        }
        canonical.append(UInt8(ascii: "\n"))
    }

    private func isNamed(_ field: SignedField, _ line: Int, of request: Request) -> Bool {
        let name = request.head.span.extracting(request.fields[line].name.range)
        return name.matches(words.span.extracting(field.name.range))
    }

    /// Without white space at its ends, and each run of it as one space.
    private mutating func writeCollapsed(_ value: Span<UInt8>) {
        var hasText = false
        var start = 0
        while start < value.count {
            while start < value.count, SigV4Space.isBlank(value[start]) { start += 1 }
            var end = start
            while end < value.count, !SigV4Space.isBlank(value[end]) { end += 1 }
            guard end > start else { return }
            if hasText { canonical.append(UInt8(ascii: " ")) }
            canonical.append(value.extracting(start..<end))
            hasText = true
            start = end
        }
    }

    @inline(__always)
    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
