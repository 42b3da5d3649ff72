import CountersignSodium

/// Bytes that only the holder of one X25519 key can read, from a sender who needs no key of his own: an ephemeral key agrees
/// with the receiver's, and what both give, with both public halves and the purpose, is the key of one XChaCha20-Poly1305
/// message. The shape of RFC 9180's base mode, without its negotiation.
///
/// `ephemeral public half (32) ‖ ciphertext ‖ tag (16)`. The key is used once, so the nonce is zero.
package enum SealedBox {
    package static let overhead = 32 + Int(crypto_aead_xchacha20poly1305_ietf_ABYTES)

    /// Whoever receives.
    package struct Receiver: Sendable {
        package static let count = Int(crypto_scalarmult_curve25519_SCALARBYTES)

        private let scalar: Secret
        /// 32 bytes, to be published.
        package let publicHalf: [UInt8]

        /// Nil where `scalar` is not 32 bytes.
        package init?(_ scalar: Secret) {
            guard scalar.count == Receiver.count, sodium_init() >= 0 else { return nil }
            var publicHalf = [UInt8](repeating: 0, count: 32)
            let verdict = scalar.withPointer { crypto_scalarmult_curve25519_base(&publicHalf, $0) }
            guard verdict == 0 else { return nil }
            self.scalar = scalar
            self.publicHalf = publicHalf
        }

        /// `purpose` is what the sender gave; nothing else opens.
        package func open(_ sealed: [UInt8], for purpose: [UInt8]) throws(NotOpened) -> Secret {
            guard sealed.count >= overhead else { throw NotOpened() }
            let ephemeral = Array(sealed[..<32])
            let ciphertext = Array(sealed[32...])
            guard let key = SealedBox.key(scalar, ephemeral, ephemeral, publicHalf) else { throw NotOpened() }
            var plain = [UInt8](repeating: 0, count: ciphertext.count - overhead + 32)
            defer { plain.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
            let verdict = key.withPointer { key in
                crypto_aead_xchacha20poly1305_ietf_decrypt(
                    &plain, nil, nil, ciphertext, UInt64(ciphertext.count), purpose, UInt64(purpose.count),
                    SealedBox.nonce, key)
            }
            guard verdict == 0 else { throw NotOpened() }
            return Secret(copying: plain.span)
        }
    }

    /// Nil where `receiver` is no public half that a key can be agreed with.
    package static func seal(
        _ secret: Secret, to receiver: [UInt8], for purpose: [UInt8], random: some RandomSource = SystemRandom()
    ) -> [UInt8]? {
        guard receiver.count == 32, let ephemeral = Receiver(random.secret(Receiver.count)) else { return nil }
        return ephemeral.sealed(secret, to: receiver, for: purpose)
    }

    private static let nonce = [UInt8](repeating: 0, count: Int(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES))

    /// Nil where the peer's half is of small order, which would make the product known.
    private static func key(_ scalar: Secret, _ peer: [UInt8], _ ephemeral: [UInt8], _ receiver: [UInt8]) -> Secret? {
        var product = [UInt8](repeating: 0, count: 32)
        defer { product.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        guard scalar.withPointer({ crypto_scalarmult_curve25519(&product, $0, peer) }) == 0 else { return nil }
        let pseudorandom = HKDFSHA512.extract(from: [Secret(copying: product.span)])
        let info = Array("countersign/1 sealed box".utf8) + ephemeral + receiver
        return HKDFSHA512.expand(pseudorandom, info: info, count: MasterKey.count)
    }
}

extension SealedBox.Receiver {
    fileprivate func sealed(_ secret: Secret, to receiver: [UInt8], for purpose: [UInt8]) -> [UInt8]? {
        guard let key = SealedBox.key(scalar, receiver, publicHalf, receiver) else { return nil }
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
