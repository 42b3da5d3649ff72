import CountersignSeal
import CountersignWire
import Glibc

/// What a backup is encrypted under.
package enum BackupKey: Sendable {
    case masterKey(MasterKey)
    case recipient(BackupRecipient)
}

/// What opens backups.
package struct BackupKeys: Sendable {
    /// Where the master key comes from, for messages.
    package var masterKey: (key: MasterKey, place: String)?
    /// Whether servers are given the master key in the same way, and need no file of it.
    package var isMasterKeyGiven = false
    /// The id that the master key must have, in hexadecimal. Needed where the key comes from the backup: the
    /// maker of the backup has chosen that key.
    package var masterKeyID: String?
    package var secretKey: (key: BackupSecretKey, place: String)?

    package init() {}
}

/// The public key that backups are encrypted to: X25519.
package struct BackupRecipient: Sendable, Equatable {
    let bytes: [UInt8]
    fileprivate static let prefix = "countersign-backup-key:"

    fileprivate init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The file that the pair's public key is in.
    package init(file path: String, contents: [UInt8]) throws(OperationalError) {
        let text = String(decoding: contents.prefix(1_024), as: UTF8.self).filter { !$0.isWhitespace }
        guard !text.hasPrefix(BackupSecretKey.prefix) else {
            throw OperationalError(
                .usage,
                message: "\(path): the secret key of a pair; expected its public key, which is beside it "
                    + "as .pub")
        }
        guard text.hasPrefix(BackupRecipient.prefix), contents.count <= 1_024,
            let bytes = Base64.decode(String(text.dropFirst(BackupRecipient.prefix.count)), as: .url),
            bytes.count == 32
        else {
            throw OperationalError(
                .usage,
                message: "\(path): expected the public key that `countersign backup key FILE` writes to "
                    + "FILE.pub")
        }
        self.init(bytes)
    }

    /// One line, with its end.
    package var text: String { "\(BackupRecipient.prefix)\(Base64.encode(bytes.span, as: .url))\n" }

    /// Eight bytes of the key's digest, in hexadecimal.
    package var id: String { Hex.encode(idBytes.span) }

    var idBytes: [UInt8] {
        let digest = SHA256.digest(bytes.span)
        return (0..<8).map { digest[$0] }
    }
}

/// The secret half.
package struct BackupSecretKey: Sendable {
    let receiver: SealedBox.Receiver
    fileprivate static let prefix = "countersign-backup-secret-key:"

    /// A new pair.
    package init() throws(OperationalError) {
        guard let receiver = SealedBox.Receiver(Secret(random: SealedBox.Receiver.count)) else {
            throw OperationalError(.failed, message: "libsodium did not start")
        }
        self.receiver = receiver
    }

    package var recipient: BackupRecipient { BackupRecipient(receiver.publicHalf) }

    /// Reads the file of mode 0600 that ``write(to:)`` makes.
    package init(file path: String) throws(OperationalError) {
        guard let text = try KeyFile.read(path) else {
            throw OperationalError(.usage, message: "\(path): no such file")
        }
        let prefix = Array(BackupSecretKey.prefix.utf8)
        let receiver = text.withExposedBytes { (bytes) -> SealedBox.Receiver? in
            guard bytes.count >= prefix.count, prefix.indices.allSatisfy({ bytes[$0] == prefix[$0] }) else {
                return nil
            }
            return SealedBox.Receiver(text: bytes.extracting(prefix.count..<bytes.count))
        }
        guard let receiver else {
            throw OperationalError(
                .usage,
                message: "\(path): expected the secret key that `countersign backup key` writes")
        }
        self.receiver = receiver
    }

    /// Writes both halves: the secret one to `path`, with mode 0600, the public one to `path`.pub. Throws if
    /// one of the files exists.
    package func write(to path: String) throws(OperationalError) {
        let other = "\(path).pub"
        for place in [path, other] where try KeyFile.exists(place) {
            throw OperationalError(.usage, message: "\(place): exists already; nothing was written")
        }
        guard let scalar = receiver.text() else {
            throw OperationalError(.failed, message: "libsodium did not start")
        }
        try KeyFile.make(
            at: path,
            holding: Secret(joining: [
                Secret(copying: Array(BackupSecretKey.prefix.utf8).span), scalar,
                Secret(copying: [0x0A].span),
            ]))
        try KeyFile.make(at: other, holding: Secret(copying: Array(recipient.text.utf8).span))
    }
}

extension MasterKey {
    /// The key in a file of mode 0600 that an operator names.
    package static func read(file path: String) throws(OperationalError) -> MasterKey {
        guard let text = try KeyFile.read(path) else {
            throw OperationalError(.usage, message: "\(path): no such file")
        }
        guard let key = text.withExposedBytes({ MasterKey(text: $0) }) else {
            throw OperationalError(
                .usage, message: "\(path): expected 32 bytes as 64 hexadecimal digits or as base64url")
        }
        return key
    }
}
