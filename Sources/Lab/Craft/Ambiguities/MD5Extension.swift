/// From the MD5 of a text that one does not know, but for its length, the MD5 of that text with more behind it: the digest is all of the
/// hash's state. Source: RFC 1321; what Merkle and Damgård's construction leaves open.
struct MD5Extension {
    /// What the hash itself puts behind a text of that many bytes.
    static func padding(behind count: Int) -> [UInt8] {
        let zeros = (119 - count % 64) % 64
        let bits = UInt64(count) * 8
        return [0x80] + [UInt8](repeating: 0, count: zeros)
            + (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64($0 * 8)) }
    }

    /// The MD5 of (the text of `count` bytes whose MD5 is `digest`) ‖ its padding ‖ `more`. Nil where `digest` is not 16 bytes.
    static func digest(continuing digest: [UInt8], of count: Int, with more: [UInt8]) -> [UInt8]? {
        guard digest.count == 16 else { return nil }
        var state = words(digest)
        let start = count + padding(behind: count).count
        let rest = more + padding(behind: start + more.count)
        for block in stride(from: 0, to: rest.count, by: 64) {
            state = compressed(words(Array(rest[block..<block + 64])), into: state)
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32($0 * 8)) } }
    }

    private static func words(_ bytes: [UInt8]) -> [UInt32] {
        stride(from: 0, to: bytes.count, by: 4).map { start in
            (0..<4).reduce(0) { $0 | UInt32(bytes[start + $1]) << UInt32($1 * 8) }
        }
    }

    private static let shifts: [[UInt32]] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]]

    private static func compressed(_ block: [UInt32], into state: [UInt32]) -> [UInt32] {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        for step in 0..<64 {
            let (mixed, place): (UInt32, Int) =
                switch step / 16 {
                case 0: ((b & c) | (~b & d), step)
                case 1: ((d & b) | (~d & c), (5 * step + 1) % 16)
                case 2: (b ^ c ^ d, (3 * step + 5) % 16)
                default: (c ^ (b | ~d), 7 * step % 16)
                }
            let sum = a &+ mixed &+ constants[step] &+ block[place]
            let shift = shifts[step / 16][step % 4]
            (a, d, c, b) = (d, c, b, b &+ (sum << shift | sum >> (32 - shift)))
        }
        return [state[0] &+ a, state[1] &+ b, state[2] &+ c, state[3] &+ d]
    }
}

extension MD5Extension {
    /// The first 32 bits behind the point of |sin(1)|, |sin(2)|… Source: RFC 1321 §3.4.
    private static let constants: [UInt32] = [
        0xD76AA478, 0xE8C7B756, 0x242070DB, 0xC1BDCEEE, 0xF57C0FAF, 0x4787C62A, 0xA8304613, 0xFD469501,
        0x698098D8, 0x8B44F7AF, 0xFFFF5BB1, 0x895CD7BE, 0x6B901122, 0xFD987193, 0xA679438E, 0x49B40821,
        0xF61E2562, 0xC040B340, 0x265E5A51, 0xE9B6C7AA, 0xD62F105D, 0x02441453, 0xD8A1E681, 0xE7D3FBC8,
        0x21E1CDE6, 0xC33707D6, 0xF4D50D87, 0x455A14ED, 0xA9E3E905, 0xFCEFA3F8, 0x676F02D9, 0x8D2A4C8A,
        0xFFFA3942, 0x8771F681, 0x6D9D6122, 0xFDE5380C, 0xA4BEEA44, 0x4BDECFA9, 0xF6BB4B60, 0xBEBFBC70,
        0x289B7EC6, 0xEAA127FA, 0xD4EF3085, 0x04881D05, 0xD9D4D039, 0xE6DB99E5, 0x1FA27CF8, 0xC4AC5665,
        0xF4292244, 0x432AFF97, 0xAB9423A7, 0xFC93A039, 0x655B59C3, 0x8F0CCC92, 0xFFEFF47D, 0x85845DD1,
        0x6FA87E4F, 0xFE2CE6E0, 0xA3014314, 0x4E0811A1, 0xF7537E82, 0xBD3AF235, 0x2AD7D2BB, 0xEB86D391,
    ]
}
