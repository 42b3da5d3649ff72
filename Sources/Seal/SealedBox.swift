import CountersignSodium

/// Encrypts bytes to one X25519 key; the sender needs no key of its own. The key of one XChaCha20-Poly1305
/// message is derived from the shared secret of an ephemeral key and the receiver's key, and from both public
/// keys; the purpose is authenticated with the message. The construction follows RFC 9180's base mode without
/// its negotiation.
///
/// The layout is `ephemeral public key (32) ‖ ciphertext ‖ tag (16)`. The key is used once, so the nonce is
/// zero.
package enum SealedBox {
    package static let overhead = 32 + Int(crypto_aead_xchacha20poly1305_ietf_ABYTES)

    /// The key pair of the receiver.
    package struct Receiver: Sendable {
        package static let count = Int(crypto_scalarmult_curve25519_SCALARBYTES)

        private let scalar: Secret
        /// The public key, 32 bytes.
        package let publicHalf: [UInt8]

        /// Nil if `scalar` is not 32 bytes.
        package init?(_ scalar: Secret) {
            guard scalar.count == Receiver.count, sodium_init() >= 0 else { return nil }
            var publicHalf = [UInt8](repeating: 0, count: 32)
            let verdict = scalar.withPointer { crypto_scalarmult_curve25519_base(&publicHalf, $0) }
            guard verdict == 0 else { return nil }
            self.scalar = scalar
            self.publicHalf = publicHalf
        }

        /// The key pair of a scalar as ``text()`` writes it; nil for anything else.
        package init?(text: Span<UInt8>) {
            guard let scalar = MasterKey.decode(text) else { return nil }
            self.init(scalar)
        }

        /// The scalar in base64url.
        package func text() -> Secret? { MasterKey(scalar)?.text() }

        /// Decrypts the bytes; `purpose` must equal the sender's.
        package func open(_ sealed: [UInt8], for purpose: [UInt8]) throws(SealError) -> Secret {
            guard sealed.count >= overhead else { throw SealError.notOpened }
            let ephemeral = Array(sealed[..<32])
            let ciphertext = Array(sealed[32...])
            guard
                let key = SealedBox.key(
                    scalar: scalar, peer: ephemeral, ephemeral: ephemeral, receiver: publicHalf)
            else { throw SealError.notOpened }
            var plain = [UInt8](repeating: 0, count: ciphertext.count - overhead + 32)
            defer { plain.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
            let verdict = key.withPointer { key in
                crypto_aead_xchacha20poly1305_ietf_decrypt(
                    &plain, nil, nil, ciphertext, UInt64(ciphertext.count), purpose, UInt64(purpose.count),
                    SealedBox.nonce, key)
            }
            guard verdict == 0 else { throw SealError.notOpened }
            return Secret(copying: plain.span)
        }
    }

    /// Nil if `receiver` is not a public key with which a key can be agreed.
    package static func seal(
        _ secret: Secret, to receiver: [UInt8], for purpose: [UInt8],
        random: some RandomSource = SystemRandom()
    ) -> [UInt8]? {
        guard receiver.count == 32, let ephemeral = Receiver(random.secret(Receiver.count)) else {
            return nil
        }
        return ephemeral.sealed(secret, to: receiver, for: purpose)
    }

    private static let nonce = [UInt8](repeating: 0, count: Int(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES))

    /// Nil if the peer's public key is of small order, because the shared secret would then be known.
    private static func key(scalar: Secret, peer: [UInt8], ephemeral: [UInt8], receiver: [UInt8]) -> Secret? {
        var product = [UInt8](repeating: 0, count: 32)
        defer { product.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        guard scalar.withPointer({ crypto_scalarmult_curve25519(&product, $0, peer) }) == 0 else {
            return nil
        }
        let pseudorandom = HKDFSHA512.extract(from: [Secret(copying: product.span)])
        let info = Array("countersign/1 sealed box".utf8) + ephemeral + receiver
        return HKDFSHA512.expand(pseudorandom, info: info, count: MasterKey.count)
    }
}

extension SealedBox.Receiver {
    fileprivate func sealed(_ secret: Secret, to receiver: [UInt8], for purpose: [UInt8]) -> [UInt8]? {
        guard
            let key = SealedBox.key(scalar: scalar, peer: receiver, ephemeral: publicHalf, receiver: receiver)
        else { return nil }
        var ciphertext = [UInt8](repeating: 0, count: secret.count + SealedBox.overhead - 32)
        key.withPointer { key in
            secret.withPointer { plain in
                _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
                    &ciphertext, nil, plain, UInt64(secret.count), purpose, UInt64(purpose.count), nil,
                    SealedBox.nonce, key)
            }
        }
        return publicHalf + ciphertext
    }
}
