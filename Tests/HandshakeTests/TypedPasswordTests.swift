import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import Testing

@testable import CountersignOpaque

@Suite struct TypedPasswordTests {
    @Test(
        "one password, however a keyboard spells it",
        arguments: [
            ("correct horse", "correct horse"), ("caf\u{E9}", "cafe\u{301}"), ("\u{212B}", "A\u{30A}"),
            ("a b", "a\u{3000}b"), ("a b", "a\u{A0}b"), ("\u{AC00}", "\u{1100}\u{1161}"),
        ])
    func same(_ pair: (String, String)) throws {
        #expect(try bytes(pair.0) == bytes(pair.1))
    }

    @Test(
        "what is not the same to people stays apart",
        arguments: [
            ("Secret", "secret"), ("a b", "a  b"), (" a", "a"), ("\u{FB01}", "fi"), ("\u{410}", "A"),
            ("\u{E9}", "e"),
        ])
    func other(_ pair: (String, String)) throws {
        #expect(try bytes(pair.0) != bytes(pair.1))
    }

    @Test func asciiAndEmojiStayAsTheyAre() throws {
        for text in ["p@ss w0rd~!", "\u{1F469}\u{200D}\u{1F680}", "\u{2764}\u{FE0F}"] {
            #expect(try bytes(text) == Array(text.utf8))
        }
    }

    @Test func whatIsNoPasswordIsTold() {
        #expect(problem([]) == .empty)
        #expect(problem([UInt8](repeating: 0x61, count: 1025)) == .tooLong)
        #expect(problem([0x61, 0xC3]) == .notUTF8)
        for text in ["a\0b", "a\nb", "a\u{7F}", "a\u{85}b", "a\u{2028}b", "a\u{378}b"] {
            #expect(problem(Array(text.utf8)) == .character, "\(text.unicodeScalars.map(\.value))")
        }
    }

    private func bytes(_ text: String) throws -> [UInt8] {
        let password = try Password(typed: Secret(copying: Array(text.utf8).span))
        return password.bytes.withExposedBytes { bytes in bytes.indices.map { bytes[$0] } }
    }

    private func problem(_ bytes: [UInt8]) -> Password.ValidationError? {
        do {
            _ = try Password(typed: Secret(copying: bytes.span))
            return nil
        } catch {
            return error
        }
    }
}
