import CountersignSeal

/// Hashing to the group and to its scalars in the suite ristretto255-SHA512. Source: RFC 9497 §4.1, mode 0x00.
enum HashToGroup {
    /// `OPRFV1-`, the mode, `-` and the suite: keeps this use of the hash apart from every other. Source: §3.1.
    private static let contextString = Array("OPRFV1-".utf8) + [0x00] + Array("-ristretto255-SHA512".utf8)

    /// Nil where the input hashes to the identity, which no one will see.
    static func element(_ input: Secret) -> Ristretto255.Element? {
        let uniform = expand(Array("HashToGroup-".utf8) + contextString) { $0.update(input) }
        return Ristretto255.Element(choosing: uniform)
    }

    /// Nil where the scalar is zero. The tag is ``OPRF/deriveKey(seed:info:)``'s, its only user. Source: §3.2.1.
    static func scalar(seed: Secret, info: [UInt8], counter: UInt8) -> Ristretto255.Scalar? {
        let uniform = expand(Array("DeriveKeyPair".utf8) + contextString) { hash in
            hash.update(seed)
            hash.update(lengthPrefix(info.count).span)
            hash.update(info.span)
            hash.update([counter].span)
        }
        return Ristretto255.Scalar(reducing: uniform)
    }

    /// `expand_message_xmd` with SHA-512 for 64 bytes, which are one block of it. Source: RFC 9380 §5.3.1.
    private static func expand(_ tag: [UInt8], _ message: (inout SHA512) -> Void) -> Secret {
        let tag = tag + [UInt8(tag.count)]
        var first = SHA512()
        first.update([UInt8](repeating: 0, count: 128).span)
        message(&first)
        first.update(lengthPrefix(64).span)
        first.update([0].span)
        first.update(tag.span)
        let seed = first.finishAsSecret()
        var second = SHA512()
        second.update(seed)
        second.update([1].span)
        second.update(tag.span)
        return second.finishAsSecret()
    }
}

/// `I2OSP(length, 2)`. Whatever has such a length was measured when it came in.
func lengthPrefix(_ length: Int) -> [UInt8] {
    [UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)]
}

extension SHA512 {
    mutating func update(_ secret: Secret) { secret.withExposedBytes { update($0) } }

    consuming func finishAsSecret() -> Secret {
        var digest = finish()
        return Secret(taking: &digest)
    }
}
