import CountersignGate
import CountersignSeal
import CountersignWire

/// A one-time code of eight digits, which a backend sends to an address. It is shown once; the store keeps a
/// keyed digest.
package struct AccountCode: Sendable, CustomStringConvertible, CustomReflectable {
    /// The default lifetime in seconds.
    package static let lifetime: Int64 = 900
    package static let expected = "eight digits"

    private static let count = 8
    private let digits: Secret

    package init(random: some RandomSource = SystemRandom()) {
        var digits: [UInt8] = []
        while digits.count < AccountCode.count {
            // 250 is the greatest multiple of ten that a byte holds.
            for byte in random.bytes(AccountCode.count) where byte < 250 && digits.count < AccountCode.count {
                digits.append(UInt8(ascii: "0") + byte % 10)
            }
        }
        self.digits = Secret(copying: digits.span)
    }

    /// Parses typed text, with or without spaces and dashes. Nil if it is not a code.
    package init?(typed text: String) {
        guard text.utf8.count <= 64 else { return nil }
        let digits = text.utf8.filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "-") }
        guard digits.count == AccountCode.count, digits.allSatisfy(ASCII.isDigit) else { return nil }
        self.digits = Secret(copying: digits.span)
    }

    package var text: String {
        digits.withExposedBytes { digits in
            String(decoding: (0..<digits.count).map { digits[$0] }, as: UTF8.self)
        }
    }

    /// The MAC over `context` and the digits.
    func digest(by key: HMACSHA256, in context: [UInt8]) -> [UInt8] {
        digits.withExposedBytes { digits in
            let mac = key.authenticate((context + (0..<digits.count).map { digits[$0] }).span)
            return mac.indices.map { mac[$0] }
        }
    }

    package var description: String { "<account code>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// What a code is good for: 1 to 32 lower-case letters, digits and `-`. A code made for one purpose is not
/// accepted for another.
package struct CodePurpose: Sendable, Hashable, CustomStringConvertible {
    package static let expected = "1 to 32 lower-case letters, digits and `-`"
    /// Redeeming such a code marks the account as verified.
    package static let verify = CodePurpose(unchecked: "verify")

    package let description: String

    private init(unchecked text: String) { description = text }

    package init?(_ text: String) {
        guard (1...32).contains(text.utf8.count),
            text.utf8.allSatisfy({
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || ASCII.isDigit($0)
                    || $0 == UInt8(ascii: "-")
            })
        else { return nil }
        description = text
    }
}
