import CountersignSeal
import CountersignWire

/// A one-time code that replaces a forgotten password: twenty characters, 100 random bits. It is printed
/// once; the store keeps only its hash.
package struct ResetCode: Sendable, CustomStringConvertible, CustomReflectable {
    /// The default lifetime in seconds.
    package static let lifetime: Int64 = 3_600

    package static let expected = "twenty digits and letters, in groups of four"

    private static let length = 20
    /// Digits and letters without those that are easily confused. Source: Crockford's base 32.
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    private let letters: Secret

    package init(random: some RandomSource = SystemRandom()) {
        // 32 letters divide 256 evenly.
        let letters = random.bytes(ResetCode.length).map { ResetCode.alphabet[Int($0 & 31)] }
        self.letters = Secret(copying: letters.span)
    }

    /// Parses typed text: in either case, with or without dashes. Nil if it is not a code.
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

    /// SHA-256, the only form in which the store keeps the code; a plain hash suffices for 100 random bits.
    package var hash: [UInt8] {
        let digest = letters.prefixed(by: "countersign/1 reset code\0").withExposedBytes { SHA256.digest($0) }
        return digest.indices.map { digest[$0] }
    }

    /// Five groups of four characters, for delivery to the account's owner.
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
