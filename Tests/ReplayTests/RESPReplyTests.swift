import TestRounds
import Testing

@testable import CountersignReplay

/// Whatever bytes a server sends: they are read as replies or refused, in bounded memory.
@Suite struct RESPReplyTests {
    @Test(
        "replies, cut anywhere",
        arguments: [
            ("+OK\r\n", [.simple("OK")]), ("-ERR no\r\n", [.error("ERR no")]), (":-2\r\n", [.integer(-2)]),
            (":9223372036854775807\r\n", [.integer(.max)]), ("$0\r\n\r\n", [.bulk([])]),
            ("$-1\r\n", [.null]), ("*-1\r\n", [.null]), ("*0\r\n", [.array([])]),
            ("$4\r\n\r\n\r\n\r\n", [.bulk([13, 10, 13, 10])]),
            ("*2\r\n$1\r\na\r\n*1\r\n:1\r\n", [.array([.bulk([97]), .array([.integer(1)])])]),
            (":1\r\n:0\r\n+\r\n", [.integer(1), .integer(0), .simple("")]),
        ] as [(String, [RESPReply])])
    func replies(_ row: (text: String, replies: [RESPReply])) throws {
        let bytes = Array(row.text.utf8)
        for size in 1...bytes.count {
            var reader = RESPReader()
            var replies: [RESPReply] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                reader.append(bytes[start..<min(start + size, bytes.count)])
                while let reply = try reader.next() { replies.append(reply) }
            }
            #expect(replies == row.replies)
        }
    }

    @Test(
        "what is no reply",
        arguments: [
            "x\r\n", "\r\n", "+a\rb", ":\r\n", ":+1\r\n", ":1x\r\n", ":9223372036854775808\r\n", "$-2\r\n",
            "$x\r\n",
            "$1\r\nabc", "$65537\r\n", "*65\r\n", "*-2\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n",
            "+\u{0}\r\n*9999999999999999999\r\n",
            "$9223372036854775807\r\n", "%1\r\n", "HTTP/1.1 400 Bad Request\r\n",
        ])
    func malformed(_ text: String) {
        var reader = RESPReader()
        reader.append(Array(text.utf8))
        #expect(throws: RESPReader.ReaderError.malformed) { while try reader.next() != nil {} }
    }

    @Test func bytesWithoutAnEndAreBounded() {
        for start in ["+", "$60000\r\n", "*64\r\n$60000\r\n"] {
            var reader = RESPReader()
            reader.append(Array(start.utf8))
            #expect(throws: RESPReader.ReaderError.malformed) {
                for _ in 0..<200 {
                    reader.append([UInt8](repeating: 97, count: 1_000))
                    while try reader.next() != nil {}
                }
            }
        }
    }

    @Test func randomBytes() {
        let alphabet = Array("+-:$*\r\n\r\n\r\n0123456789a".utf8) + [0xFF]
        var random = seededRandom()
        for _ in 0..<rounds(20_000) {
            var reader = RESPReader()
            for _ in 0..<4 {
                reader.append(
                    (0..<Int.random(in: 1...24, using: &random)).map { _ in
                        alphabet.randomElement(using: &random) ?? 0
                    })
                do {
                    while try reader.next() != nil {}
                } catch {
                    break
                }
            }
        }
    }
}
