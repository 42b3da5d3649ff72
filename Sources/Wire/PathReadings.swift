/// The paths that a backend may serve for one path: the path itself, and the paths that it passes to a
/// program in the middle (`/index.php/pay`). Every decision about a path considers all of them.
package struct PathReadings {
    /// The most programs in a path. Legitimate paths have fewer.
    package static let mostPrograms = 4
    private static let extensions: [StaticString] = [
        "php", "php3", "php4", "php5", "php7", "php8", "phtml", "phps", "cgi", "fcgi", "pl", "py", "rb",
        "lua", "sh",
        "asp", "aspx", "ashx", "asmx", "axd", "jsp", "jspx", "jsf", "do", "action", "cfm", "exe", "dll",
    ]

    /// The readings other than the path itself: for each program, the path without the program's segment, and
    /// the part after it.
    package let others: [[UInt8]]
    /// Whether the path has more programs than ``mostPrograms``; `others` is empty then.
    package let isBeyondBound: Bool

    /// Splits the path at `/` only. For a path that backends may split in other ways, use
    /// ``LoosePath/readings(of:)``.
    package init(_ path: Span<UInt8>) {
        var others: [[UInt8]] = []
        var start = 1
        for index in 0..<path.count where index > 0 && path[index] == UInt8(ascii: "/") {
            if index > start, PathReadings.isProgram(path.extracting(start..<index)) {
                let rest = path.extracting(index...).withUnsafeBufferPointer { Array($0) }
                if start > 1 {
                    others.append(
                        path.extracting(0..<(start - 1)).withUnsafeBufferPointer { Array($0) } + rest)
                }
                others.append(rest)
            }
            start = index + 1
        }
        isBeyondBound = others.count > 2 * PathReadings.mostPrograms
        self.others = isBeyondBound ? [] : others
    }

    private static func isProgram(_ name: Span<UInt8>) -> Bool {
        var dot = name.count
        while dot > 0, name[dot - 1] != UInt8(ascii: ".") { dot -= 1 }
        guard dot > 0 else { return false }
        let end = name.extracting(dot...)
        return extensions.contains { end.matchesWithoutCase($0) }
    }
}

extension LoosePath {
    /// The path and its other readings, as the most lenient backend reads each; nil for a path with too many
    /// programs, which may mean any path.
    package static func readings(of path: Span<UInt8>) -> [LoosePath]? {
        let loose = LoosePath(path)
        var text: [UInt8] = []
        for index in 0..<loose.count { text += [UInt8(ascii: "/")] + loose[index] }
        let readings = PathReadings(text.span)
        return readings.isBeyondBound ? nil : [loose] + readings.others.map { LoosePath($0.span) }
    }
}
