import CountersignSodium

/// What a sealed value is for. It is authenticated with the value, so that a row copied over another row, another
/// app or another kind, or put back from an earlier epoch, does not open.
package struct SealBinding: Sendable, Equatable {
    /// What the value is: `release-secret`, `authority-key`, …
    package var kind: String
    /// The app it belongs to; empty for the deployment's own.
    package var app: String
    /// The row it stands in: a key id, a setting's name.
    package var row: String
    /// Which edition of that row.
    package var epoch: UInt64

    package init(kind: String, app: String = "", row: String, epoch: UInt64 = 0) {
        self.kind = kind
        self.app = app
        self.row = row
        self.epoch = epoch
    }

    /// Each part is preceded by its length: joined bare, `a` ‖ `bc` and `ab` ‖ `c` would bind alike.
    fileprivate func associatedData(keyID: [UInt8]) -> [UInt8] {
        var data = Array("countersign/1 seal".utf8)
        for part in [Array(kind.utf8), Array(app.utf8), Array(row.utf8), keyID] {
            data.append(contentsOf: bigEndian(UInt64(part.count)))
            data.append(contentsOf: part)
        }
        data.append(contentsOf: bigEndian(epoch))
        return data
    }

    private func bigEndian(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
    }
}

/// The value was sealed by another key, for another place, or has been altered. Which one cannot be told.
package struct NotOpened: Error, Sendable, Equatable {
    package init() {}
}

/// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03, libsodium's `_ietf`): its 24-byte nonces may be drawn at random for
/// any number of values, so no counter has to survive a crash or a restored backup.
///
/// A sealed value is `1 ‖ nonce (24) ‖ ciphertext ‖ tag (16)`; the first byte names this layout.
extension MasterKey {
    private static let layout: UInt8 = 1
    private static let nonceCount = Int(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)
    private static let tagCount = Int(crypto_aead_xchacha20poly1305_ietf_ABYTES)

    package func seal(
        _ secret: Secret, as binding: SealBinding, random: some RandomSource = SystemRandom()
    ) -> [UInt8] {
        let nonce = random.bytes(MasterKey.nonceCount)
        let data = binding.associatedData(keyID: id)
        var ciphertext = [UInt8](repeating: 0, count: secret.count + MasterKey.tagCount)
        key.withPointer { key in
            secret.withPointer { plain in
                _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
                    &ciphertext, nil, plain, UInt64(secret.count), data, UInt64(data.count), nil, nonce, key)
            }
        }
        return [MasterKey.layout] + nonce + ciphertext
    }

    package func open(_ sealed: [UInt8], as binding: SealBinding) throws(NotOpened) -> Secret {
        let start = 1 + MasterKey.nonceCount
        guard sealed.count >= start + MasterKey.tagCount, sealed[0] == MasterKey.layout else { throw NotOpened() }
        let nonce = Array(sealed[1..<start])
        let ciphertext = Array(sealed[start...])
        let data = binding.associatedData(keyID: id)
        var plain = [UInt8](repeating: 0, count: ciphertext.count - MasterKey.tagCount)
        defer { plain.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        let verdict = key.withPointer { key in
            crypto_aead_xchacha20poly1305_ietf_decrypt(
                &plain, nil, nil, ciphertext, UInt64(ciphertext.count), data, UInt64(data.count), nonce, key)
        }
        guard verdict == 0 else { throw NotOpened() }
        return Secret(copying: plain.span)
    }
}
