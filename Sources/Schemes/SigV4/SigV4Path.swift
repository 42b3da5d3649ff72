import CountersignWire

/// The path's line of a canonical request.
enum SigV4Path {
    /// As many segments as a path may have that is written anew: this happens before the caller has proved anything.
    static let mostSegments = 4_096

    /// Whether the standard spelling of some *other* path that can be sent might read like this one. It has unreserved
    /// characters, slashes, and the upper-case escapes of what a target may hold beside those, at least one of them;
    /// nothing else. `/a%20b` is not one, for no target has a space in it; `/a%2520b` is.
    static func mayBeStandard(_ path: borrowing Span<UInt8>) -> Bool {
        var hasEscape = false
        var index = 0
        while index < path.count {
            let byte = path[index]
            if byte == UInt8(ascii: "%") {
                guard let escaped = Percent.byte(in: path, at: index + 1), isUpper(path[index + 1]),
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
    static func isKept(_ byte: UInt8) -> Bool { Percent.isUnreserved(byte) || byte == UInt8(ascii: "/") }

    private static func isUpper(_ digit: UInt8) -> Bool { digit < UInt8(ascii: "a") }
}

extension SigV4Space {
    /// Without empty and dot segments, and everything but unreserved characters escaped, `%` too: what came escaped is
    /// escaped twice. A path that ends in a dot segment loses its slash, as botocore has it.
    mutating func writeStandardPath(_ request: Request) throws(Refusal) {
        let path = request.head.span.extracting(request.path.range)
        segments.removeAll(keepingCapacity: true)
        var start = 0
        var count = 0
        while start <= path.count {
            count += 1
            guard count <= SigV4Path.mostSegments else {
                throw Refusal(.malformed, "path: more than \(SigV4Path.mostSegments) segments")
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
                segments.append(Slice(start, end))
            } else if start > 0, end < path.count {
                // Neither what stands before the first slash nor what stands behind the last.
                facts.hasLostSegments = true
            }
            start = end + 1
        }
        let before = canonical.count
        for segment in segments {
            canonical.append(UInt8(ascii: "/"))
            var start = Int(segment.start)
            while start < Int(segment.end) {
                let end = Percent.endOfUnreserved(in: path, from: start)
                canonical.append(path.extracting(start..<end))
                guard end < Int(segment.end) else { break }
                Percent.escape(path[end], into: &canonical)
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
