import CountersignSeal
import CountersignWire

/// A new nonce for each request: letters and digits, which every scheme takes.
package enum Nonce {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// 16 characters for form-md5, as its clients have it; 22 for others: 95 and 130 bits.
    package static func make(for scheme: SchemeName, random: some RandomSource = SystemRandom()) -> String {
        let count = scheme == .formMD5 ? 16 : 22
        var letters: [UInt8] = []
        while letters.count < count {
            // 248 is the largest multiple of 62 in a byte: what lies above would favour some letters.
            for byte in random.bytes(count) where byte < 248 && letters.count < count {
                letters.append(alphabet[Int(byte) % alphabet.count])
            }
        }
        return String(decoding: letters, as: UTF8.self)
    }
}
