import CountersignSeal

/// The oblivious pseudorandom function, base mode, suite ristretto255-SHA512: who has the key evaluates an input it does
/// not see, for someone who does not see the key. Source: RFC 9497 §3.3.1.
enum OPRF {
    /// A key from a seed. Source: §3.2.1.
    static func deriveKey(seed: Secret, info: StaticString) throws(CryptographyFault) -> Ristretto255.Scalar {
        let info = Array(UnsafeBufferPointer(start: info.utf8Start, count: info.utf8CodeUnitCount))
        // The first counter does it, but for one seed in 2^252.
        for counter in UInt8.min...UInt8.max {
            if let key = HashToGroup.scalar(seed: seed, info: info, counter: counter) { return key }
        }
        throw CryptographyFault.impossible
    }

    /// What the client sends, and the blind it keeps.
    static func blind(
        _ password: Password, random: some RandomSource
    ) throws(CryptographyFault) -> (blind: Ristretto255.Scalar, blinded: Ristretto255.Element) {
        guard let element = HashToGroup.element(password.bytes) else {
            throw CryptographyFault.impossible
        }
        let blind = try Ristretto255.Scalar.random(random)
        return (blind, try element.times(blind))
    }

    /// What the server answers.
    static func evaluate(
        _ blinded: Ristretto255.Element, with key: Ristretto255.Scalar
    ) throws(CryptographyFault) -> Ristretto255.Element {
        try blinded.times(key)
    }

    /// The function's value, 64 bytes, which only the client learns.
    static func finalize(
        _ password: Password, blind: Ristretto255.Scalar, evaluated: Ristretto255.Element
    ) throws(CryptographyFault) -> Secret {
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
