import CountersignSeal

/// Bytes of a length that the type fixes: nonces and MACs. Not `Equatable`: `==` would compare a MAC until the first
/// difference.
struct FixedBytes<let count: Int>: Sendable {
    let array: [UInt8]

    /// Nil for another length.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == count else { return nil }
        array = bytes
    }
}

/// Source: RFC 9807 §2: Nn.
typealias Nonce = FixedBytes<32>

extension FixedBytes {
    init(_ byte: (Int) -> UInt8) { array = (0..<count).map(byte) }

    init(random: some RandomSource) { array = random.bytes(count) }

    /// What was secret, and is about to be sent.
    init(publishing secret: Secret) {
        self = secret.withExposedBytes { bytes in FixedBytes { bytes[$0] } }
    }
}
