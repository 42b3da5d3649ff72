import CountersignWire
import Testing

@testable import CountersignHTTP

@Suite struct ChunkedDecoderTests {
    /// The content and the bytes taken; nil where the body did not end. Fed in pieces of `step` bytes.
    private func decode(_ text: String, step: Int) throws -> (content: String, consumed: Int)? {
        let bytes = Array(text.utf8)
        var decoder = ChunkedDecoder()
        var content: [UInt8] = []
        var offset = 0
        while offset < bytes.count {
            let piece = Array(bytes[offset..<min(offset + step, bytes.count)])
            var position = 0
            reading: while true {
                switch try decoder.next(piece.span, from: position) {
                case .needsMore: break reading
                case .data(let range):
                    content += piece[range]
                    position = range.upperBound
                case .end(let consumed): return (String(decoding: content, as: UTF8.self), offset + consumed)
                }
            }
            offset += piece.count
        }
        return nil
    }

    @Test(arguments: [1, 2, 3, 7, 1000])
    func takesTheCodingOff(step: Int) throws {
        let coded =
            "4\r\nWiki\r\n6;name=\"v\"\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\n"
        let decoded = try #require(try decode(coded + "GET", step: step))
        #expect(decoded.content == "Wikipedia in \r\n\r\nchunks.")
        #expect(decoded.consumed == coded.utf8.count)
    }

    @Test(arguments: [
        "\r\n", "g\r\n", "-1\r\n", " 1\r\n", "1 \r\na\r\n", "1\na\r\n", "1\r\nab\r\n", "1\r\na\n0\r\n\r\n",
        "1\ra", "1\r\naX\n0\r\n\r\n", "1;a\nb\r\n", "0\r\n\n", "0\r\n x\r\n", "0\r\nA: \u{0}\r\n\r\n",
        "1234567890123456\r\n",
        // Trailers are field lines by the rules of a head.
        "0\r\nA\r\n\r\n", "0\r\nA: b\r\nGET / HTTP/1.1\r\n\r\n", "0\r\nA : b\r\n\r\n", "0\r\nA\t: b\r\n\r\n",
        "0\r\n: b\r\n\r\n", "0\r\nA: b\r\n c\r\n\r\n", "0\r\nA: b\n\r\n", "0\r\nA: b\rc\r\n\r\n",
        "0\r\nA(b: c\r\n\r\n",
    ])
    func refuses(_ text: String) {
        #expect { _ = try decode(text, step: 1000) } throws: { ($0 as? Refusal)?.code == .malformed }
    }

    @Test func readsAsManyTrailersAsItMay() throws {
        let coded = "1\r\na\r\n0\r\n" + String(repeating: "A:\r\n", count: 64) + "\r\n"
        #expect(try decode(coded, step: 5)?.consumed == coded.utf8.count)
    }

    @Test func boundsExtensionsAndTrailers() {
        for text in [
            "1;" + String(repeating: "x", count: 2_000), "0\r\nA: " + String(repeating: "x", count: 9_000),
            "0\r\n" + String(repeating: "x", count: 9_000),
            "0\r\n" + String(repeating: "A: b\r\n", count: 65),
        ] {
            #expect { _ = try decode(text, step: 100_000) } throws: { ($0 as? Refusal)?.code == .tooLarge }
        }
    }
}
