import CountersignWire

/// A path as the most forgiving of the servers behind us read it: escapes undone, twice where they are escaped twice; overlong UTF-8
/// too; a backslash a slash; parameters of segments, empty and dot segments gone; without case, and without what Windows leaves
/// out at the end of a name. For telling that somebody means a path, never for serving one.
struct LoosePath {
    let segments: [[UInt8]]

    init(_ path: Span<UInt8>) {
        var text = LoosePath.undone(path)
        // Nobody is known to undo more than twice.
        for _ in 0..<2 where text.contains(UInt8(ascii: "%")) { text = LoosePath.undone(text.span) }
        var segments: [[UInt8]] = []
        for raw in text.split(whereSeparator: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }) {
            let segment = raw.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "?") && $0 != 0 }
            if segment.elementsEqual("..".utf8) {
                _ = segments.popLast()
                continue
            }
            var name = segment.map { ASCII.lowercased($0) }
            while let last = name.last, last <= 0x20 || last == UInt8(ascii: ".") { name.removeLast() }
            if !name.isEmpty { segments.append(name) }
        }
        self.segments = segments
    }

    /// Whether a path has anything in it by which it could mean `/login/….php`. Most have not, and cost no more than this.
    static func isWorthReading(_ path: Span<UInt8>) -> Bool {
        for index in path.indices where path[index] == UInt8(ascii: "%") || path[index] == UInt8(ascii: ".") {
            return true
        }
        return false
    }

    private static func undone(_ text: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            var byte = text[index]
            if byte == UInt8(ascii: "%"), let value = Percent.byte(in: text, at: index + 1) {
                byte = value
                index += 2
            }
            index += 1
            // Two bytes for what one would say: the first has the upper bit, the second the other six.
            if let lead = bytes.last, lead == 0xC0 || lead == 0xC1, byte & 0xC0 == 0x80 {
                bytes.removeLast()
                byte = (lead & 1) << 6 | byte & 0x3F
            }
            bytes.append(byte)
        }
        return bytes
    }
}
