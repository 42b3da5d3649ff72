// A path without an ambiguity has one reading: the most forgiving reader finds what stands there, and nothing
// else.
import CountersignWire
import TestRounds
import Testing

@Suite struct LoosePathTests {
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
            guard LoosePath.ambiguity(of: path.span) == nil else { continue }
            plain += 1
            #expect(LoosePath(path.span).segments == asWritten(path), "\(text)")
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
        let found = LoosePath(Array(path.utf8).span)
        #expect(found.segments == segments.map { Array($0.utf8) })
        #expect(found.count == segments.count)
    }

    @Test("a path is at a route, behind it, or has its name with an extension")
    func routes() {
        let route = LoosePath(Array("/pay/out".utf8).span)
        for (path, isAt) in [
            ("/pay/out", true), ("/PAY/out/now", true), ("/pay/out.php", true), ("/pay/outer", false),
            ("/pay", false), ("/x/pay/out", false), ("/pay/ou", false),
        ] {
            #expect(LoosePath(Array(path.utf8).span).isAtOrBelow(route) == isAt, "\(path)")
        }
        #expect(LoosePath(Array("/any".utf8).span).isAtOrBelow(LoosePath(Array("/".utf8).span)))
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
