import CountersignWire

/// The segments of a path that a backend may run as a program with the rest of the path as its argument.
struct ScriptSegments: Sequence {
    /// The limit; an honest path has fewer.
    private static let most = 4
    private static let extensions: [StaticString] = [
        "php", "php3", "php4", "php5", "php7", "php8", "phtml", "phps", "cgi", "fcgi", "pl", "py", "rb",
        "lua", "sh",
        "asp", "aspx", "ashx", "asmx", "axd", "jsp", "jspx", "jsf", "do", "action", "cfm", "exe", "dll",
    ]

    private let segments: [ScriptSegment]

    /// Refuses a path with more than ``most`` as `malformed`.
    init(in path: Span<UInt8>) throws(Refusal) {
        var found: [ScriptSegment] = []
        var start = 1
        for index in 0..<path.count where index > 0 && path[index] == UInt8(ascii: "/") {
            if index > start, ScriptSegments.isScript(path.extracting(start..<index)) {
                found.append(ScriptSegment(start: start, end: index))
            }
            start = index + 1
        }
        guard found.count <= ScriptSegments.most else {
            throw Refusal(.malformed, detail: "the path has more than \(ScriptSegments.most) programs in it")
        }
        segments = found
    }

    func makeIterator() -> IndexingIterator<[ScriptSegment]> { segments.makeIterator() }

    private static func isScript(_ name: Span<UInt8>) -> Bool {
        var dot = name.count
        while dot > 0, name[dot - 1] != UInt8(ascii: ".") { dot -= 1 }
        guard dot > 0 else { return false }
        let end = name.extracting(dot...)
        return extensions.contains { end.matchesWithoutCase($0) }
    }
}

struct ScriptSegment {
    fileprivate let start: Int
    fileprivate let end: Int

    /// The path without this segment, and the part after this segment alone.
    func readings(of path: Span<UInt8>) -> [[UInt8]] {
        let behind = path.extracting(end...).withUnsafeBufferPointer { Array($0) }
        guard start > 1 else { return [behind] }
        return [path.extracting(0..<(start - 1)).withUnsafeBufferPointer { Array($0) } + behind, behind]
    }
}
