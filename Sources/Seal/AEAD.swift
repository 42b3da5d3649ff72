import CountersignSodium

/// The purpose of a sealed value. It is authenticated with the value, so that a value copied to another row,
/// app or kind, or restored from an earlier epoch, does not open.
package struct SealBinding: Sendable, Equatable {
    /// The kind of value: `release-secret`, `authority-key`, …
    package var kind: String
    /// The app that the value belongs to; empty for values of the deployment.
    package var app: String
    /// The row that contains the value: a key id, a setting's name.
    package var row: String
    /// The edition of that row.
    package var epoch: UInt64

    package init(kind: String, app: String = "", row: String, epoch: UInt64 = 0) {
        self.kind = kind
        self.app = app
        self.row = row
        self.epoch = epoch
    }

    /// Each part is preceded by its length: without it, `a` ‖ `bc` and `ab` ‖ `c` would give the same bytes.
    fileprivate func associatedData(keyID: [UInt8]) -> [UInt8] {
        var data: [UInt8] = []
        data.reserveCapacity(64 + kind.utf8.count + app.utf8.count + row.utf8.count + keyID.count)
        data.append(contentsOf: "countersign/1 seal".utf8)
        append(kind, to: &data)
        append(app, to: &data)
        append(row, to: &data)
        append(UInt64(keyID.count), to: &data)
        data.append(contentsOf: keyID)
        append(epoch, to: &data)
        return data
    }

    private func append(_ part: String, to data: inout [UInt8]) {
        append(UInt64(part.utf8.count), to: &data)
        let isCopied: Void? = part.utf8.withContiguousStorageIfAvailable {
            data.append(contentsOf: UnsafeRawBufferPointer($0))
        }
        if isCopied == nil { data.append(contentsOf: part.utf8) }
    }

    /// Big-endian.
    private func append(_ number: UInt64, to data: inout [UInt8]) {
        withUnsafeBytes(of: number.bigEndian) { data.append(contentsOf: $0) }
    }
}

/// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03, libsodium's `_ietf`). Its 24-byte nonces may be random for
/// any number of values, so no counter has to survive a crash or a restored backup.
///
/// A sealed value is `slot ‖ nonce (24) ‖ ciphertext ‖ tag (16)`.
extension MasterKey {
    private static let nonceCount = Int(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)
    private static let tagCount = Int(crypto_aead_xchacha20poly1305_ietf_ABYTES)

    /// The length of a sealed value.
    package static func sealedCount(of count: Int) -> Int { 1 + nonceCount + count + tagCount }

    package func seal(
        _ secret: Secret, as binding: SealBinding, random: some RandomSource = SystemRandom()
    ) -> [UInt8] {
        seal(secret, as: binding, slot: .first, random: random)
    }

    /// The same as a value of a store that `slot` names this key in.
    package func seal(
        _ secret: Secret, as binding: SealBinding, slot: SealSlot, random: some RandomSource = SystemRandom()
    ) -> [UInt8] {
        let nonce = random.bytes(MasterKey.nonceCount)
        let data = binding.associatedData(keyID: id)
        var sealed = [UInt8](repeating: 0, count: MasterKey.sealedCount(of: secret.count))
        sealed[0] = slot.rawValue
        sealed.withUnsafeMutableBufferPointer { sealed in
            guard let start = sealed.baseAddress.map({ $0 + 1 }) else { return }
            start.update(from: nonce, count: nonce.count)
            key.withPointer { key in
                secret.withPointer { plain in
                    _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
                        start + nonce.count, nil, plain, UInt64(secret.count), data, UInt64(data.count), nil,
                        nonce, key)
                }
            }
        }
        return sealed
    }

    package func open(_ sealed: [UInt8], as binding: SealBinding) throws(SealError) -> Secret {
        try open(sealed, as: binding, slot: .first)
    }

    package func open(_ sealed: [UInt8], as binding: SealBinding, slot: SealSlot) throws(SealError) -> Secret
    {
        let start = 1 + MasterKey.nonceCount
        guard sealed.count >= start + MasterKey.tagCount, sealed[0] == slot.rawValue else {
            throw SealError.notOpened
        }
        let nonce = Array(sealed[1..<start])
        let ciphertext = Array(sealed[start...])
        let data = binding.associatedData(keyID: id)
        var plain = [UInt8](repeating: 0, count: ciphertext.count - MasterKey.tagCount)
        defer { plain.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        let verdict = key.withPointer { key in
            crypto_aead_xchacha20poly1305_ietf_decrypt(
                &plain, nil, nil, ciphertext, UInt64(ciphertext.count), data, UInt64(data.count), nonce, key)
        }
        guard verdict == 0 else { throw SealError.notOpened }
        return Secret(copying: plain.span)
    }
}

/// The first byte of a sealed value. It says which key to open it with where two may be in use, as while a
/// master key is replaced; a wrong one does not open, because the seal binds the key's id.
package struct SealSlot: Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// A key that one process made for values in its own memory.
    package static let process = SealSlot(rawValue: 0)
    /// Also the only slot of values that have no successor key, such as a client's vault.
    package static let first = SealSlot(rawValue: 1)

    /// The slot of the key that follows a stored value's: 1 to 255, and around. Two slots by turns would let
    /// a value that was sealed before two rotations pass for a new one.
    package var next: SealSlot { SealSlot(rawValue: rawValue == 255 ? 1 : rawValue + 1) }
}

/// Seals values, and opens what it has sealed.
package protocol Sealer: Sendable {
    /// For a value that is stored.
    func seal(_ secret: Secret, as binding: SealBinding, random: some RandomSource) -> [UInt8]
    /// For a value that this process alone keeps, in memory, and that costs the same to open as a stored one.
    func sealForMemory(_ secret: Secret, as binding: SealBinding) -> [UInt8]
    func open(_ sealed: [UInt8], as binding: SealBinding) throws(SealError) -> Secret
}

extension MasterKey: Sealer {
    package func sealForMemory(_ secret: Secret, as binding: SealBinding) -> [UInt8] {
        seal(secret, as: binding)
    }
}

/// The 32-byte key under which the authority seals all its secrets. It is never in the database.
package final class MasterKey: Sendable {
    package static let count = Int(crypto_aead_xchacha20poly1305_ietf_KEYBYTES)

    let key: Secret
    /// Eight bytes that identify this key without revealing it: a keyed hash of a fixed text.
    package let id: [UInt8]

    /// Nil if `secret` is not 32 bytes.
    package init?(_ secret: Secret) {
        guard secret.count == MasterKey.count, sodium_init() >= 0 else { return nil }
        key = secret
        var digest = [UInt8](repeating: 0, count: 32)
        let label = Array("countersign/1 master key id".utf8)
        let length = digest.count
        secret.withPointer { key in
            _ = crypto_generichash(&digest, length, label, UInt64(label.count), key, secret.count)
        }
        id = Array(digest.prefix(8))
    }

    package static func random() -> Secret { Secret(random: count) }

    /// Parses the key: 64 hexadecimal digits, or 43 characters of base64url (one `=` of padding allowed). Nil
    /// for anything else. libsodium's decoders run in constant time.
    package convenience init?(text: Span<UInt8>) {
        guard let secret = MasterKey.decode(text) else { return nil }
        self.init(secret)
    }

    /// The key in base64url, as `init(text:)` reads it, for the key file.
    package func text() -> Secret {
        let variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING
        let length = sodium_base64_encoded_len(MasterKey.count, variant)
        var text = [CChar](repeating: 0, count: length)
        defer { text.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        key.withPointer { _ = sodium_bin2base64(&text, length, $0, MasterKey.count, variant) }
        return text.withUnsafeBytes { text in
            Secret(copying: Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: text.dropLast())))
        }
    }

    /// The 32 bytes that `text` is, in the forms of ``init(text:)``.
    static func decode(_ text: Span<UInt8>) -> Secret? {
        guard text.count <= 64 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 64)
        defer { bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        var decoded = 0
        let verdict = text.withUnsafeBytes { text -> CInt in
            let start = text.bindMemory(to: CChar.self).baseAddress
            switch text.count {
            case 64: return sodium_hex2bin(&bytes, count, start, text.count, nil, &decoded, nil)
            case 43:
                let variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING
                return sodium_base642bin(&bytes, count, start, text.count, nil, &decoded, nil, variant)
            case 44:
                let variant = sodium_base64_VARIANT_URLSAFE
                return sodium_base642bin(&bytes, count, start, text.count, nil, &decoded, nil, variant)
            default: return -1
            }
        }
        guard verdict == 0, decoded == count else { return nil }
        return Secret(copying: bytes.span.extracting(0..<count))
    }
}
