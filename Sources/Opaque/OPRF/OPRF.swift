import CountersignSeal

/// The oblivious pseudorandom function, base mode, suite ristretto255-SHA512: the server evaluates an input
/// that it does not learn, and the client does not learn the server's key. Source: RFC 9497 §3.3.1.
enum OPRF {
    /// Derives a key from a seed. Source: §3.2.1.
    static func deriveKey(seed: Secret, info: StaticString) throws(SealError) -> Ristretto255.Scalar {
        let info = Array(UnsafeBufferPointer(start: info.utf8Start, count: info.utf8CodeUnitCount))
        // The first counter gives a key for all but one seed in 2^252.
        for counter in UInt8.min...UInt8.max {
            if let key = HashToGroup.scalar(seed: seed, info: info, counter: counter) { return key }
        }
        throw SealError.impossible
    }

    /// The blinded element that the client sends, and the blind that it keeps.
    static func blind(
        _ password: Password, random: some RandomSource
    ) throws(SealError) -> (blind: Ristretto255.Scalar, blinded: Ristretto255.Element) {
        guard let element = HashToGroup.element(password.bytes) else {
            throw SealError.impossible
        }
        let blind = try Ristretto255.Scalar.random(random)
        return (blind, try element.times(blind))
    }

    /// The evaluation that the server returns.
    static func evaluate(
        _ blinded: Ristretto255.Element, with key: Ristretto255.Scalar
    ) throws(SealError) -> Ristretto255.Element {
        try blinded.times(key)
    }

    /// The function's output, 64 bytes; only the client learns it.
    static func finalize(
        _ password: Password, blind: Ristretto255.Scalar, evaluated: Ristretto255.Element
    ) throws(SealError) -> Secret {
        let unblinded = try evaluated.secretProduct(try blind.inverse())
        var hash = SHA512()
        hash.update(lengthPrefix(password.bytes.count).span)
        hash.update(password.bytes)
        hash.update(lengthPrefix(unblinded.count).span)
        hash.update(unblinded)
        hash.update(Array("Finalize".utf8).span)
        return hash.finishAsSecret()
    }
}

/// Hashes to the group and to its scalars in the suite ristretto255-SHA512. Source: RFC 9497 §4.1, mode 0x00.
enum HashToGroup {
    /// `OPRFV1-`, the mode, `-` and the suite: separates this use of the hash from others. Source: §3.1.
    private static let contextString = Array("OPRFV1-".utf8) + [0x00] + Array("-ristretto255-SHA512".utf8)

    /// Nil if the input hashes to the identity, which has negligible probability.
    static func element(_ input: Secret) -> Ristretto255.Element? {
        let uniform = expand(tag: Array("HashToGroup-".utf8) + contextString) { $0.update(input) }
        return Ristretto255.Element(choosing: uniform)
    }

    /// Nil if the scalar is zero. The tag is that of ``OPRF/deriveKey(seed:info:)``, the only caller. Source:
    /// §3.2.1.
    static func scalar(seed: Secret, info: [UInt8], counter: UInt8) -> Ristretto255.Scalar? {
        let uniform = expand(tag: Array("DeriveKeyPair".utf8) + contextString) { hash in
            hash.update(seed)
            hash.update(lengthPrefix(info.count).span)
            hash.update(info.span)
            hash.update([counter].span)
        }
        return Ristretto255.Scalar(reducing: uniform)
    }

    /// `expand_message_xmd` with SHA-512 for 64 bytes, which is one block of its output. Source: RFC 9380
    /// §5.3.1.
    private static func expand(tag: [UInt8], message: (inout SHA512) -> Void) -> Secret {
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

/// `I2OSP(length, 2)`. The length was checked when the value was made.
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

/// A password as bytes. The caller decides how the typed text is encoded, and must not change it.
package struct Password: Sendable {
    let bytes: Secret

    /// Nil for more than 65,535 bytes, a length that OPAQUE cannot encode. Source: RFC 9497 §1.2.
    package init?(_ bytes: Secret) {
        guard bytes.count <= Int(UInt16.max) else { return nil }
        self.bytes = bytes
    }

    /// The characters of a password in UTF-8, each code point of Unicode as one. Source: NIST SP 800-63B
    /// §3.1.1.2.
    package var codePoints: Int {
        bytes.withExposedBytes { bytes in
            var count = 0
            for index in bytes.indices where bytes[index] & 0xC0 != 0x80 { count += 1 }
            return count
        }
    }
}

extension Password {
    /// The element that the password hashes to, before it is blinded. Without the server, a password guesser
    /// can compute no more of a login than this. Nil if it is the identity. Source: RFC 9497 §3.3.1.
    package var element: Ristretto255.Element? { HashToGroup.element(bytes) }
}
