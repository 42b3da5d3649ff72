/// A path as the most forgiving of the servers behind us read it: escapes undone, twice where they are escaped twice; overlong UTF-8
/// too; a backslash a slash; parameters of segments, empty and dot segments gone; without case, and without what Windows leaves
/// out at the end of a name. For telling that somebody means a path, never for serving one.
package struct LoosePath: Sendable {
    package let segments: [[UInt8]]

    package init(_ path: Span<UInt8>) {
        var text = LoosePath.undone(path)
        // Nobody is known to undo more than twice.
        for _ in 0..<2 where text.contains(UInt8(ascii: "%")) { text = LoosePath.undone(text.span) }
        var segments: [[UInt8]] = []
        for raw in text.split(whereSeparator: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }) {
            let segment = raw.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "?") && $0 != 0 }
            var name = segment.map { ASCII.lowercased($0) }
            while let last = name.last, last <= 0x20 { name.removeLast() }
            if name.elementsEqual("..".utf8) {
                _ = segments.popLast()
                continue
            }
            while let last = name.last, last <= 0x20 || last == UInt8(ascii: ".") { name.removeLast() }
            if !name.isEmpty { segments.append(name) }
        }
        self.segments = segments
    }

    /// Whether a path has anything in it by which it could mean `/login/….php`. Most have not, and cost no more than this.
    package static func isWorthReading(_ path: Span<UInt8>) -> Bool {
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
            if byte & 0xC0 == 0x80, let upper = takeOverlongLead(from: &bytes) { byte = upper << 6 | byte & 0x3F }
            bytes.append(byte)
        }
        return bytes
    }

    /// Of two, three or four bytes for what one would say, all but the last, where `bytes` ends in them: the last but one has the upper
    /// bit, and those before say nothing. Source: RFC 3629 §3, §10.
    private static func takeOverlongLead(from bytes: inout [UInt8]) -> UInt8? {
        for lead in [[0xC0], [0xC1], [0xE0, 0x80], [0xE0, 0x81], [0xF0, 0x80, 0x80], [0xF0, 0x80, 0x81]] as [[UInt8]]
        where bytes.count >= lead.count && bytes[(bytes.count - lead.count)...].elementsEqual(lead) {
            bytes.removeLast(lead.count)
            return lead[lead.count - 1] & 1
        }
        return nil
    }

    /// Whether it could be `route`, or goes on behind it; also as `route` with an extension.
    package func isAt(or route: LoosePath) -> Bool {
        guard let last = route.segments.last else { return true }
        let before = route.segments.dropLast()
        guard segments.count > before.count, segments.starts(with: before) else { return false }
        let here = segments[before.count]
        return here == last || here.starts(with: last + [UInt8(ascii: ".")])
    }
}
