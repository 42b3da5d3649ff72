import CountersignSeal
import CountersignWire
import Synchronization

/// Randomness that a port is told: drawn once, and given out in the same order.
final class DrawnBytes: RandomSource {
    private let drawn = Mutex<[[UInt8]]>([])

    func bytes(_ count: Int) -> [UInt8] {
        let new = SystemRandom().bytes(count)
        drawn.withLock { $0.append(new) }
        return new
    }

    /// The bytes of one drawing.
    subscript(number: Int) -> [UInt8] { drawn.withLock { $0.indices.contains(number) ? $0[number] : [] } }

    /// The scalar that a drawing of 64 bytes is, 32 bytes, little-endian.
    func scalar(_ number: Int) throws(CaseFailure) -> [UInt8] {
        let wide = self[number]
        guard let scalar = Ristretto255.Scalar(reducing: Secret(copying: wide.span)) else {
            throw .notStaged("a scalar of zero")
        }
        return scalar.bytes.exposed
    }
}

extension Secret {
    /// Of known answers, which are nobody's secrets.
    var exposed: [UInt8] {
        withExposedBytes { bytes in
            bytes.indices.map { bytes[$0] }
        }
    }
}

extension JSONValue {
    /// base64url.
    static func bytes(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes.span, .url)) }
}
