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
        let coded = "4\r\nWiki\r\n6;name=\"v\"\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\n"
        let decoded = try #require(try decode(coded + "GET", step: step))
        #expect(decoded.content == "Wikipedia in \r\n\r\nchunks.")
        #expect(decoded.consumed == coded.utf8.count)
    }

    @Test(arguments: [
        "\r\n", "g\r\n", "-1\r\n", " 1\r\n", "1 \r\na\r\n", "1\na\r\n", "1\r\nab\r\n", "1\r\na\n0\r\n\r\n", "1\ra",
        "1;a\nb\r\n", "0\r\n\n", "0\r\n x\r\n", "0\r\nA: \u{0}\r\n\r\n", "1234567890123456\r\n",
    ])
    func refuses(_ text: String) {
        #expect { _ = try decode(text, step: 1000) } throws: { ($0 as? Refusal)?.code == .malformed }
    }

    @Test func boundsExtensionsAndTrailers() {
        for text in ["1;" + String(repeating: "x", count: 2_000), "0\r\nA: " + String(repeating: "x", count: 9_000)] {
            #expect { _ = try decode(text, step: 100_000) } throws: { ($0 as? Refusal)?.code == .tooLarge }
        }
    }
}
