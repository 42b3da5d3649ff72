// A path without an ambiguity has one reading: the most lenient reader finds the same segments. And a path and a
// prefix match by one comparison, of the path and of what a program in it gets.
import CountersignWire
import TestRounds
import Testing

@Suite struct PathReadingsTests {
    @Test("paths made at random of what readers differ in")
    func oneReading() {
        let pieces: [String] = [
            "/", "a", "B", ".", "..", "%2e", "%2F", "%5c", "\\", ";", "%3b", "%", "%25", "%c3%a9", "%C0%AE",
            "%20", " ", "~", "%7E", "%00", "%e0%80", "%AF", "%C3", "#", "%23", "%3F", "?", "x.php", "-", "_",
            "+", ":", "@", "%u0041", "é",
        ]
        var random = seededRandom()
        let count = rounds(50_000)
        var plain = 0
        for _ in 0..<count {
            let length = Int.random(in: 0...6, using: &random)
            let text =
                "/"
                + (0..<length).map { _ in pieces[Int.random(in: 0..<pieces.count, using: &random)] }.joined()
            let path = Array(text.utf8)
            guard PathReadings(path.span).ambiguity == nil else { continue }
            plain += 1
            #expect(LenientPath(path.span).segments == asWritten(path), "\(text)")
        }
        #expect(plain > count / 50)
    }

    @Test(
        "what the most forgiving reader finds",
        arguments: [
            ("/a/../B/./c", ["b", "c"]), ("/..", []), ("//a\\b;x/", ["a", "b"]), ("/a. /b%00c", ["a", "b"]),
            ("/%252561", ["a"]), ("/%25252561", ["%61"]),
            // The letter a and a slash, each in two, three and four bytes.
            ("/%c1%a1x", ["ax"]), ("/%e0%81%a1x", ["ax"]), ("/%f0%80%81%a1x", ["ax"]),
            ("/x%c0%afy", ["x", "y"]), ("/x%e0%80%afy", ["x", "y"]), ("/x%f0%80%80%afy", ["x", "y"]),
        ])
    func forgiving(_ path: String, segments: [String]) {
        let found = LenientPath(Array(path.utf8).span)
        #expect(found.segments == segments.map { Array($0.utf8) })
    }

    @Test(
        "how a path matches a prefix",
        arguments: [
            ("/pay/out", .exact), ("/pay/out/", .exact), ("/pay/out/now", .exact), ("/PAY/out", .loose),
            ("/pay/out.php", .loose), ("/pay/out.php/x", .loose), ("/pay.cgi/out", .loose),
            ("/pay.x.y/out/x", .loose), ("/pay/out::$DATA", .loose), ("/pay/out%3A%3a%24DATA", .loose),
            ("/pay:$I30:$INDEX_ALLOCATION/out", .loose), ("/pay/outer", .none), ("/pay/out:x", .none),
            ("/pay", .none), ("/pay.x", .none), ("/x/pay/out", .none), ("/pay/ou", .none), ("", .none),
            ("pay/out", .none), ("/payx/out", .none), ("/pay/.out", .none), ("/pay/x.y/out", .none),
            ("/pay/out.2", .loose), ("/pay/out.2/x", .none), ("/pay.2/out", .none), ("/pay.2.x/out", .loose),
        ] as [(String, PathMatch)])
    func matches(_ path: String, match: PathMatch) {
        let bytes = Array(path.utf8)
        #expect(PathMatch(bytes.span, with: Array("/pay/out".utf8)) == match)
        let isPath = path.first == "/"
        #expect(PathMatch(bytes.span, with: Array("/".utf8)) == (isPath ? .exact : .none))
    }

    @Test("an escape and the character match loosely")
    func escapes() {
        let prefix = Array("/a@b".utf8)
        #expect(PathMatch(Array("/a%40b".utf8).span, with: prefix) == .loose)
        #expect(PathMatch(Array("/a@b/c".utf8).span, with: prefix) == .exact)
    }

    @Test(
        "what a program in a path gets",
        arguments: [
            ("/index.php/pay", ["/pay"]), ("/x/index.phar/pay", ["/x/pay", "/pay"]),
            ("/index.php8.2/pay", ["/pay"]), ("/a.svc/b.x/c", ["/b.x/c", "/a.svc/c", "/c"]),
            ("/index.php/", ["/"]), ("/v1.2/news", []), ("/files/report.pdf", []), ("/.well-known/x", []),
            ("/users/anna@example.com/orders", []), ("/a@b.c/index.php/pay", ["/a@b.c/pay", "/pay"]),
            ("/users/anna.smith/photos", ["/users/photos", "/photos"]), ("/10.0.0.1/x", []), ("/", []),
            ("/x//index.php/pay", []), ("", []),
        ] as [(String, [String])])
    func programs(_ path: String, others: [String]) {
        let readings = PathReadings(Array(path.utf8).span)
        #expect(readings.others.map { String(decoding: $0, as: UTF8.self) } == others)
        #expect((readings.ambiguity == nil) == !path.contains("//"))
    }

    @Test("a path has at most so many programs")
    func manyPrograms() {
        func readings(_ count: Int) -> PathReadings {
            PathReadings(Array((String(repeating: "/a.b", count: count) + "/c").utf8).span)
        }
        let most = readings(PathReadings.mostPrograms)
        #expect(most.ambiguity == nil && most.others.count == 2 * PathReadings.mostPrograms - 1)
        let beyond = readings(PathReadings.mostPrograms + 1)
        #expect(beyond.ambiguity != nil && beyond.others.isEmpty)
    }

    /// Split, decoded once, without case; nothing left out but what follows a slash at the end.
    private func asWritten(_ path: [UInt8]) -> [[UInt8]] {
        var segments = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if segments.last?.isEmpty == true { segments.removeLast() }
        return segments.map { segment in
            let raw = Array(segment)
            var bytes: [UInt8] = []
            var index = 0
            while index < raw.count {
                let escaped =
                    raw[index] == UInt8(ascii: "%") ? PercentEncoding.byte(in: raw.span, at: index + 1) : nil
                bytes.append(ASCII.lowercased(escaped ?? raw[index]))
                index += escaped == nil ? 1 : 3
            }
            return bytes
        }
    }
}

/// A path as the most lenient backend reads it: escapes decoded, twice if they are escaped twice; overlong UTF-8
/// decoded; backslashes as slashes; parameters of segments, empty segments and dot segments removed; without
/// case, and without the characters that Windows ignores at the end of a name.
private struct LenientPath {
    /// Escapes undone, in lower case. The segments are slices of it: a path may have one for every other
    /// byte.
    private let text: [UInt8]
    private let names: [Range<Int>]

    init(_ path: Span<UInt8>) {
        var text = LenientPath.percentDecoded(path)
        // No server is known to decode more than twice.
        for _ in 0..<2 where text.contains(UInt8(ascii: "%")) { text = LenientPath.percentDecoded(text.span) }
        for index in text.indices { text[index] = ASCII.lowercased(text[index]) }
        self.text = text
        names = LenientPath.names(in: text.span)
    }

    var segments: [[UInt8]] { names.map { Array(text[$0]) } }

    private static func names(in text: Span<UInt8>) -> [Range<Int>] {
        var names: [Range<Int>] = []
        var next = 0
        while next < text.count {
            let start = next
            while next < text.count, text[next] != UInt8(ascii: "/"), text[next] != UInt8(ascii: "\\") {
                next += 1
            }
            var end = start
            while end < next, !endsName(text[end]) { end += 1 }
            next += 1
            while end > start, text[end - 1] <= 0x20 { end -= 1 }
            if text.extracting(start..<end).matches("..") {
                _ = names.popLast()
                continue
            }
            while end > start, text[end - 1] <= 0x20 || text[end - 1] == UInt8(ascii: ".") { end -= 1 }
            if end > start { names.append(start..<end) }
        }
        return names
    }

    /// Whether what follows in a segment is no part of its name.
    private static func endsName(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ";") || byte == UInt8(ascii: "?") || byte == 0
    }

    private static func percentDecoded(_ text: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            var byte = text[index]
            if byte == UInt8(ascii: "%"), let value = PercentEncoding.byte(in: text, at: index + 1) {
                byte = value
                index += 2
            }
            index += 1
            if byte & 0xC0 == 0x80, let upper = takeOverlongLead(from: &bytes) {
                byte = upper << 6 | byte & 0x3F
            }
            bytes.append(byte)
        }
        return bytes
    }

    /// Of two, three or four bytes for what one would say, all but the last, where `bytes` ends in them: the
    /// last but one has the upper bit, and those before say nothing. Source: RFC 3629 §3, §10.
    private static func takeOverlongLead(from bytes: inout [UInt8]) -> UInt8? {
        let count = bytes.count
        guard let last = bytes.last else { return nil }
        if last & 0xFE == 0xC0 {
            bytes.removeLast()
        } else if last & 0xFE == 0x80, count >= 2, bytes[count - 2] == 0xE0 {
            bytes.removeLast(2)
        } else if last & 0xFE == 0x80, count >= 3, bytes[count - 2] == 0x80, bytes[count - 3] == 0xF0 {
            bytes.removeLast(3)
        } else {
            return nil
        }
        return last & 1
    }
}
