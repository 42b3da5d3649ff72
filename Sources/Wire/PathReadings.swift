/// The paths that a backend may serve for one path: the path itself, and the paths that it passes to a
/// program in the middle (`/index.php/pay`). Every decision about a path considers all of them, and compares
/// each by ``PathMatch``.
package struct PathReadings {
    /// The most programs in a path. Legitimate paths have fewer.
    package static let mostPrograms = 8

    /// The reason why a backend may serve a path that is not listed here; nil if the list is complete.
    package let ambiguity: StaticString?
    /// The readings other than the path itself: for each program, the path without the program's segment, and
    /// the part after it. Empty if the path is ambiguous.
    package let others: [[UInt8]]

    package init(_ path: Span<UInt8>) {
        let (found, hasMore) = PathReadings.others(of: path)
        let excess: StaticString? = hasMore ? "too many segments with an extension" : nil
        ambiguity = PathReadings.ambiguity(of: path) ?? excess
        others = ambiguity == nil ? found : []
    }

    private static func others(of path: Span<UInt8>) -> (found: [[UInt8]], hasMore: Bool) {
        var others: [[UInt8]] = []
        var (start, isProgram, isName, programs) = (1, false, false, 0)
        for index in 0..<path.count where index > 0 {
            if path[index] == UInt8(ascii: "/") {
                if isProgram, !isName {
                    guard programs < mostPrograms else { return ([], true) }
                    programs += 1
                    let rest = path.extracting(index...).withUnsafeBufferPointer { Array($0) }
                    let head = path.extracting(0..<(start - 1)).withUnsafeBufferPointer { Array($0) }
                    others += head.isEmpty ? [rest] : [head + rest, rest]
                }
                (start, isProgram, isName) = (index + 1, false, false)
            } else if path[index] == UInt8(ascii: "@") {
                // `/users/anna@example.com/orders`: programs have no such names.
                isName = true
            } else if index > start + 1, path[index - 1] == UInt8(ascii: "."), ASCII.isLetter(path[index]) {
                // By its form, because a backend may run files of any extension. `v1.2` and `.well-known`
                // name no program.
                isProgram = true
            }
        }
        return (others, false)
    }
}

/// How a path matches a prefix of paths, by whole segments. Both must be unambiguous (``PathReadings``), and
/// the prefix has no escapes and ends in no `/` of its own.
package enum PathMatch: Sendable {
    case none
    /// The path matches as a lenient backend compares it: without case, with escapes decoded, and with or
    /// without an extension or stream after each segment of the prefix.
    case loose
    /// The path equals the prefix, or continues it with a `/`, byte for byte.
    case exact

    package init(_ path: Span<UInt8>, with prefix: [UInt8]) {
        self = .none
        guard path.count > 0, path[0] == UInt8(ascii: "/") else { return }
        var isExact = true
        var index = 0
        for expected in prefix where prefix.count > 1 {
            if expected == UInt8(ascii: "/"), let end = PathMatch.endOfExtension(at: index, of: path) {
                (isExact, index) = (false, end)
            }
            guard index < path.count else { return }
            let (byte, next) = PathMatch.decodedByte(at: index, of: path)
            if byte != expected || next != index + 1 { isExact = false }
            guard ASCII.lowercased(byte) == ASCII.lowercased(expected) else { return }
            index = next
        }
        if index == 0 || index == path.count || path[index] == UInt8(ascii: "/") {
            self = isExact ? .exact : .loose
        } else if PathMatch.endOfExtension(at: index, of: path) != nil {
            self = .loose
        }
    }

    /// The end of the segment, if an extension begins at `index`, or a stream of a file, which Windows serves
    /// as the file (`::$DATA`, `:$I30:$INDEX_ALLOCATION`). Before the last segment an extension has a letter
    /// after a dot: `/v1.2/pay` is no form of `/v1/pay`.
    private static func endOfExtension(at index: Int, of path: Span<UInt8>) -> Int? {
        guard index < path.count else { return nil }
        let (byte, next) = decodedByte(at: index, of: path)
        var isNamed = false
        if byte == UInt8(ascii: ":"), next < path.count {
            let (second, _) = decodedByte(at: next, of: path)
            isNamed = second == UInt8(ascii: ":") || second == UInt8(ascii: "$")
        }
        guard isNamed || byte == UInt8(ascii: ".") else { return nil }
        var end = next
        while end < path.count, path[end] != UInt8(ascii: "/") {
            if path[end - 1] == UInt8(ascii: "."), ASCII.isLetter(path[end]) { isNamed = true }
            end += 1
        }
        return isNamed || end == path.count ? end : nil
    }

    private static func decodedByte(at index: Int, of path: Span<UInt8>) -> (byte: UInt8, next: Int) {
        guard path[index] == UInt8(ascii: "%"), let byte = PercentEncoding.byte(in: path, at: index + 1)
        else { return (path[index], index + 1) }
        return (byte, index + 3)
    }
}
