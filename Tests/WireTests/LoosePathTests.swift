// A path without an ambiguity has one reading: the most forgiving reader finds what stands there, and nothing else.
import CountersignWire
import Testing

@Suite struct LoosePathTests {
    @Test("paths made at random of what readers differ in")
    func oneReading() {
        let pieces: [String] = [
            "/", "a", "B", ".", "..", "%2e", "%2F", "%5c", "\\", ";", "%3b", "%", "%25", "%c3%a9", "%C0%AE", "%20", " ",
            "~", "%7E",
            "%00", "%e0%80", "%AF", "%C3", "#", "%23", "%3F", "?", "x.php", "-", "_", "+", ":", "@", "%u0041", "é",
        ]
        var random = SystemRandomNumberGenerator()
        var plain = 0
        for _ in 0..<50_000 {
            let count = Int.random(in: 0...6, using: &random)
            let text = "/" + (0..<count).map { _ in pieces[Int.random(in: 0..<pieces.count, using: &random)] }.joined()
            let path = Array(text.utf8)
            guard LoosePath.ambiguity(of: path.span) == nil else { continue }
            plain += 1
            #expect(LoosePath(path.span).segments == asWritten(path), "\(text)")
        }
        #expect(plain > 1_000)
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
                let escaped = raw[index] == UInt8(ascii: "%") ? Percent.byte(in: raw.span, at: index + 1) : nil
                bytes.append(ASCII.lowercased(escaped ?? raw[index]))
                index += escaped == nil ? 1 : 3
            }
            return bytes
        }
    }
}
