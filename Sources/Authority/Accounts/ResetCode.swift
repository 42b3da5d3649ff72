import CountersignSeal
import CountersignWire

/// A one-time code with which a forgotten password is set anew: twenty characters, 100 random bits. Printed once; only its
/// hash is kept.
package struct ResetCode: Sendable, CustomStringConvertible, CustomReflectable {
    /// Seconds for which it is good, unless said otherwise.
    package static let lifetime: Int64 = 3_600

    package static let expected = "twenty digits and letters, in groups of four"

    private static let length = 20
    /// Digits and letters without those that are taken for one another. Source: Crockford's base 32.
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    private let letters: Secret

    package init(random: some RandomSource = SystemRandom()) {
        // 32 letters divide 256 evenly.
        let letters = random.bytes(ResetCode.length).map { ResetCode.alphabet[Int($0 & 31)] }
        self.letters = Secret(copying: letters.span)
    }

    /// As somebody typed it: in either case, with or without the dashes. Nil for what no code is.
    package init?(typed text: String) {
        guard text.utf8.count <= 64 else { return nil }
        var letters: [UInt8] = []
        for byte in text.utf8 {
            switch ASCII.isLetter(byte) ? byte & 0xDF : byte {
            case UInt8(ascii: "-"), UInt8(ascii: " "): continue
            case UInt8(ascii: "O"): letters.append(UInt8(ascii: "0"))
            case UInt8(ascii: "I"), UInt8(ascii: "L"): letters.append(UInt8(ascii: "1"))
            case let letter where ResetCode.alphabet.contains(letter): letters.append(letter)
            default: return nil
            }
        }
        guard letters.count == ResetCode.length else { return nil }
        self.letters = Secret(copying: letters.span)
    }

    /// What is kept of it: SHA-256, which is enough for what was drawn from 2^100.
    package var hash: [UInt8] {
        let digest = letters.prefixed(by: "countersign/1 reset code\0").withExposedBytes { SHA256.digest($0) }
        return digest.indices.map { digest[$0] }
    }

    /// In five groups of four, for the one who is to deliver it.
    package var text: String {
        letters.withExposedBytes { letters in
            let groups = stride(from: 0, to: letters.count, by: 4).map { start in
                String(decoding: (start..<start + 4).map { letters[$0] }, as: UTF8.self)
            }
            return groups.joined(separator: "-")
        }
    }

    package var description: String { "<reset code>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
