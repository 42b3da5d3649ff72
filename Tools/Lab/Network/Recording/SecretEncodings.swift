/// The forms that a secret takes when it is encoded without encryption.
struct SecretEncodings {
    private let secret: [UInt8]
    /// Its Base64 forms, for each of the three offsets within a group, without the digits that depend on the
    /// surrounding bytes.
    private let encoded: [[UInt8]]

    init(of secret: [UInt8]) {
        self.secret = secret
        encoded = (0..<3).flatMap { offset in
            let digits = SecretEncodings.base64(Array(repeating: 0, count: offset) + secret)
            let head = (offset * 8 + 5) / 6
            let core = Array(digits.dropFirst(head))
            let forURLs = core.map {
                $0 == UInt8(ascii: "+") ? UInt8(ascii: "-") : $0 == UInt8(ascii: "/") ? UInt8(ascii: "_") : $0
            }
            // A very short secret leaves too few digits for a significant match.
            return core.count < 4 ? [] : core == forURLs ? [core] : [core, forURLs]
        }
    }

    func appear(in bytes: [UInt8]) -> Bool {
        guard !secret.isEmpty else { return false }
        return [bytes, SecretEncodings.percentDecoded(bytes)].contains { bytes in
            bytes.contains(run: secret) || encoded.contains { bytes.contains(run: $0) }
        }
    }

    /// The digits that depend on the given bytes only: the last digit of an incomplete group is left out.
    private static func base64(_ bytes: [UInt8]) -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var (digits, held, bits): ([UInt8], UInt32, UInt32) = ([], 0, 0)
        for byte in bytes {
            held = (held << 8 | UInt32(byte)) & 0xFFFF
            bits += 8
            while bits >= 6 {
                bits -= 6
                digits.append(alphabet[Int(held >> bits & 63)])
            }
        }
        return digits
    }

    /// With `+` for a space, as in forms.
    private static func percentDecoded(_ bytes: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let value = UInt8(
                    String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
            {
                decoded.append(value)
                index += 3
            } else {
                decoded.append(bytes[index] == UInt8(ascii: "+") ? 0x20 : bytes[index])
                index += 1
            }
        }
        return decoded
    }
}

extension [UInt8] {
    /// Whether the bytes occur in it consecutively.
    fileprivate func contains(run: [UInt8]) -> Bool {
        guard let first = run.first, count >= run.count else { return false }
        return (0...(count - run.count)).contains {
            self[$0] == first && self[$0..<($0 + run.count)].elementsEqual(run)
        }
    }
}
