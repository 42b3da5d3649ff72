import CountersignSeal
import CountersignWire

/// How path and query are written in a canonical request.
///
/// Clients in the field differ in it, so up to three spellings of a request are tried. No two requests of
/// different meaning may share one, or a signature for one of them would open the other:
/// - *Query.* Each spelling of a query is itself a query, and has the same parameters as the one that was
///   sent: it is in another order, or writes the same bytes with other escapes, or a bare name with `=`. `+`,
///   which is a space to some backends and itself to others, and `%2B` stay apart. So two queries that share
///   a spelling have the same parameters.
/// - *Path.* The standard spelling escapes what was sent once more (`%20` to `%2520`), so it is another path
///   where it differs, and a client might sign that other path as written. Hence a path is taken as written
///   only where it is not itself the standard spelling of another path: ``SigV4Path/mayBeStandard(_:)``.
/// - Both stand between the same line feeds, which no target has.
enum SigV4CanonicalForm: BitwiseCopyable, Sendable {
    /// AWS's: parameters escaped anew and sorted; the path escaped once more, but for s3.
    case standard
    /// Parameters sorted as they were sent: botocore, for a query that it was given in the URL.
    case sorted
    /// Path and query as they were sent: curl up to 7.88.
    case asWritten
}

extension SigV4Buffers {
    /// Whether that form is allowed and may differ from those before it. Called after the standard form was
    /// written.
    func mayDiffer(_ spelling: SigV4CanonicalForm, for request: Request) -> Bool {
        switch spelling {
        case .standard: return true
        case .sorted: return !facts.isEscapedAsStandard
        case .asWritten:
            // Clients that presign URLs sort the parameters that they add.
            guard authorization.form == .header else { return false }
            let path = request.head.span.extracting(request.path.range)
            let isSamePath = isForS3 || !facts.isPathChanged
            if isSamePath { return !facts.isInOrder || facts.hasBareNames || !facts.isEscapedAsStandard }
            return !SigV4Path.mayBeStandard(path)
        }
    }

    /// The only service whose paths are signed as sent, because they are names of objects.
    var isForS3: Bool { words.span.extracting(authorization.service.range).matches("s3") }
}

extension SigV4Buffers {
    /// Method, path, query, signed fields, their names and the payload's digest, a line each.
    /// Source: AWS Signature Version 4, "Create a canonical request".
    mutating func writeCanonicalRequest(of request: Request, in spelling: SigV4CanonicalForm) throws(Refusal)
    {
        let lineFeed = UInt8(ascii: "\n")
        if spelling == .standard { facts = CanonicalFormFacts() }
        canonical.clear()
        canonical.append(request.head.span.extracting(request.method.range))
        canonical.append(lineFeed)
        facts.hasLostSegments = false
        if spelling == .asWritten || isForS3 {
            writePathAsWritten(request)
        } else {
            try writeStandardPath(request)
        }
        canonical.append(lineFeed)
        switch spelling {
        case .standard: try writeSortedQuery(of: request, escapes: .anew)
        case .sorted: try writeSortedQuery(of: request, escapes: .kept)
        case .asWritten: writeQueryAsWritten(request)
        }
        canonical.append(lineFeed)
        for field in names { writeField(field, of: request) }
        canonical.append(lineFeed)
        canonical.append(authorization.signedFields, of: words)
        canonical.append(lineFeed)
        switch authorization.payload {
        case .field(let value): canonical.append(request.head.span.extracting(value.range))
        case .body: Hex.append(SHA256.digest(request.body.span).span, to: &canonical)
        case .unsigned: canonical.append("UNSIGNED-PAYLOAD")
        }
    }

    /// `name:value`; the values of several lines joined by commas.
    private mutating func writeField(_ field: SignedField, of request: Request) {
        canonical.append(field.name, of: words)
        canonical.append(UInt8(ascii: ":"))
        var left = field.lines
        var line = field.firstLine
        while left > 0, line < request.fields.count {
            if line == field.firstLine || isNamed(field, line: line, of: request) {
                if line != field.firstLine { canonical.append(UInt8(ascii: ",")) }
                writeCollapsed(request.head.span.extracting(request.fields[line].value.range))
                left -= 1
            }
            line += 1
        }
        canonical.append(UInt8(ascii: "\n"))
    }

    private func isNamed(_ field: SignedField, line: Int, of request: Request) -> Bool {
        let name = request.head.span.extracting(request.fields[line].name.range)
        return name.matches(words.span.extracting(field.name.range))
    }

    /// Without white space at its ends, and each run of it as one space.
    private mutating func writeCollapsed(_ value: Span<UInt8>) {
        var hasText = false
        var start = 0
        while start < value.count {
            while start < value.count, SigV4Buffers.isBlank(value[start]) { start += 1 }
            var end = start
            while end < value.count, !SigV4Buffers.isBlank(value[end]) { end += 1 }
            guard end > start else { return }
            if hasText { canonical.append(UInt8(ascii: " ")) }
            canonical.append(value.extracting(start..<end))
            hasText = true
            start = end
        }
    }

    @inline(__always)
    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}

/// The path's line of a canonical request.
enum SigV4Path {
    /// As many segments as a path may have that is written anew: this happens before the caller has proved
    /// anything.
    static let mostSegments = 4_096

    /// Whether the standard spelling of some *other* path that can be sent might read like this one. It has
    /// unreserved characters, slashes, and the upper-case escapes of what a target may hold beside those, at
    /// least one of them; nothing else. `/a%20b` is not one, for no target has a space in it; `/a%2520b` is.
    static func mayBeStandard(_ path: borrowing Span<UInt8>) -> Bool {
        var hasEscape = false
        var index = 0
        while index < path.count {
            let byte = path[index]
            if byte == UInt8(ascii: "%") {
                guard let escaped = PercentEncoding.byte(in: path, at: index + 1), isUpper(path[index + 1]),
                    isUpper(path[index + 2]), escaped > 0x20, escaped < 0x7F, !isKept(escaped)
                else { return false }
                hasEscape = true
                index += 3
            } else {
                guard isKept(byte) else { return false }
                index += 1
            }
        }
        return hasEscape
    }

    /// What the standard spelling leaves alone.
    static func isKept(_ byte: UInt8) -> Bool {
        PercentEncoding.isUnreserved(byte) || byte == UInt8(ascii: "/")
    }

    private static func isUpper(_ digit: UInt8) -> Bool { digit < UInt8(ascii: "a") }
}

extension SigV4Buffers {
    /// Without empty and dot segments, and everything but unreserved characters escaped, `%` too: what came
    /// escaped is escaped twice. A path that ends in a dot segment loses its slash, as botocore has it.
    mutating func writeStandardPath(_ request: Request) throws(Refusal) {
        let path = request.head.span.extracting(request.path.range)
        segments.removeAll(keepingCapacity: true)
        var start = 0
        var count = 0
        while start <= path.count {
            count += 1
            guard count <= SigV4Path.mostSegments else {
                throw Refusal(.malformed, detail: "path: more than \(SigV4Path.mostSegments) segments")
            }
            var end = start
            while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
            let segment = path.extracting(start..<end)
            if segment.matches("..") {
                _ = segments.popLast()
                facts.hasLostSegments = true
            } else if segment.matches(".") {
                facts.hasLostSegments = true
            } else if segment.count > 0 {
                segments.append(ByteRange(from: start, to: end))
            } else if start > 0, end < path.count {
                // Neither the part before the first slash nor the part after the last.
                facts.hasLostSegments = true
            }
            start = end + 1
        }
        let before = canonical.count
        for segment in segments {
            canonical.append(UInt8(ascii: "/"))
            var start = Int(segment.start)
            while start < Int(segment.end) {
                let end = PercentEncoding.endOfUnreserved(in: path, from: start)
                canonical.append(path.extracting(start..<end))
                guard end < Int(segment.end) else { break }
                PercentEncoding.escape(path[end], into: &canonical)
                start = end + 1
            }
        }
        let endsInSlash = path.count > 0 && path[path.count - 1] == UInt8(ascii: "/")
        if segments.isEmpty || endsInSlash { canonical.append(UInt8(ascii: "/")) }
        facts.isPathChanged = !canonical.span.extracting(before..<canonical.count).matches(path)
    }

    /// As it was sent.
    mutating func writePathAsWritten(_ request: Request) {
        if request.path.isEmpty { canonical.append(UInt8(ascii: "/")) }
        canonical.append(request.head.span.extracting(request.path.range))
    }
}
