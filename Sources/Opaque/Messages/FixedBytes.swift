import CountersignSeal

/// Bytes of a length that the type fixes: nonces and MACs. Not `Equatable`: `==` would compare a MAC until
/// the first difference.
struct FixedBytes<Length: ByteLength>: Sendable {
    let array: [UInt8]

    /// Nil if the length differs.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Length.count else { return nil }
        array = bytes
    }
}

enum Length96: ByteLength { static var count: Int { 96 } }
enum Length128: ByteLength { static var count: Int { 128 } }

/// Source: RFC 9807 §2: Nn.
typealias Nonce = FixedBytes<Length32>

extension FixedBytes {
    init(_ byte: (Int) -> UInt8) { array = (0..<Length.count).map(byte) }

    init(random: some RandomSource) { array = random.bytes(Length.count) }

    /// Copies bytes of a secret that is about to be sent.
    init(publishing secret: Secret) {
        self = secret.withExposedBytes { bytes in FixedBytes { bytes[$0] } }
    }
}

/// An output of HMAC-SHA512: an envelope's tag, and the MACs of both sides. Source: RFC 9807 §2: Nm.
typealias Tag = FixedBytes<Length64>

extension Secret {
    /// Whether the received tag equals the expected one, compared in constant time. All decisions of OPAQUE
    /// use it.
    func equals(_ tag: Tag) -> Bool {
        withExposedBytes { ConstantTime.equals($0, tag.array.span) == .equal }
    }
}
