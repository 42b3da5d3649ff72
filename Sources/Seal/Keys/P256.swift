/// A P-256 public key as the 65 bytes `04 ‖ x ‖ y`. The functions that use the point check that it is on the
/// curve. Source: SEC 1 §2.3.3.
package struct P256Point: Sendable, Hashable {
    package static let count = 65

    package let bytes: [UInt8]

    /// Nil unless `bytes` are 65 and begin with 04.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == P256Point.count, bytes[0] == 0x04 else { return nil }
        self.bytes = bytes
    }

    /// The key as SubjectPublicKeyInfo in DER. Source: RFC 5480 §2.
    var subjectPublicKeyInfo: [UInt8] {
        [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A,
            0x86, 0x48,
            0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ] + bytes
    }

    /// The point of a P-256 key's SubjectPublicKeyInfo; nil for other keys.
    package init?(subjectPublicKeyInfo der: [UInt8]) {
        guard let point = P256Point(Array(der.suffix(P256Point.count))), point.subjectPublicKeyInfo == der
        else {
            return nil
        }
        self = point
    }

    /// The key prepared for many verifications; throws if the point is not on the curve.
    package func verifyingKey() throws(SealError) -> PublicKey { try PublicKey(self) }

    package var isOnCurve: Bool { KeyHandle(self) != nil }

    /// Whether `signature`, r ‖ s in 64 bytes, is a valid signature of `message` under ecdsa-p256-sha256. It
    /// never is if the point is not on the curve. For a key that is used once; use ``verifyingKey()`` for one
    /// that is kept.
    package func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> ConstantTime.Verdict {
        guard let key = KeyHandle(self) else { return .different }
        return ECDSA.verifyOnce(signature, of: message, under: key)
    }
}

/// A P-256 private key for key agreement. Source: NIST SP 800-56A §5.7.1.2; RFC 5903 §9 for the x coordinate.
package final class AgreementKey: Sendable {
    private let key: KeyHandle
    package let publicPoint: P256Point

    /// Generates a key.
    package convenience init() throws(SealError) {
        guard let key = KeyHandle.randomP256() else {
            throw SealError.unusableKey(expected: "a P-256 key that the library makes")
        }
        try self.init(key)
    }

    /// Parses a key that ``pkcs8`` encoded.
    package convenience init(pkcs8: Secret) throws(SealError) {
        guard let key = KeyHandle(privateKeyInfo: pkcs8) else {
            throw SealError.unusableKey(expected: "a private key as PKCS #8")
        }
        try self.init(key)
    }

    private init(_ key: KeyHandle) throws(SealError) {
        guard let point = key.p256Point else { throw SealError.unusableKey(expected: "a key on P-256") }
        self.key = key
        publicPoint = point
    }

    /// The private key as PKCS #8, to be stored secretly. Source: RFC 5208 §5.
    package var pkcs8: Secret? { key.privateKeyInfo }

    /// The x coordinate of the product, 32 bytes; throws if `point` is not on the curve.
    package func sharedSecret(with point: P256Point) throws(SealError) -> Secret {
        guard let peer = KeyHandle(point) else { throw SealError.unusableKey(expected: "a point on P-256") }
        return try key.sharedSecret(with: peer)
    }
}
