import CountersignSeal
import CountersignWire

extension Trust {
    /// A pinned public key: the SHA-256 of a certificate's SubjectPublicKeyInfo. It outlives the certificate
    /// if a renewal keeps the key. Written `sha256/` and 44 characters of Base64. Source: RFC 7469 §2.4.
    public struct Pin: Sendable, Hashable, CustomStringConvertible {
        /// 32 bytes.
        public let digest: [UInt8]

        /// From its text, as `countersign serve` prints it.
        public init(_ text: String) throws(TrustError) {
            guard text.hasPrefix("sha256/"),
                let digest = Base64.decode(String(text.dropFirst(7)), as: .standard),
                digest.count == 32
            else { throw TrustError("pin `\(text)`: expected sha256/ and 44 characters of Base64") }
            self.digest = digest
        }

        /// The pin of a SubjectPublicKeyInfo in DER. Source: RFC 5280 §4.1.2.7.
        public init(subjectPublicKeyInfo der: [UInt8]) {
            let hash = SHA256.digest(der.span)
            digest = hash.indices.map { hash[$0] }
        }

        /// `sha256/…`
        public var description: String { "sha256/\(Base64.encode(digest.span, as: .standard))" }
    }
}

/// The keys that a host may have: those in use, and at least one whose private half is kept elsewhere, so
/// that a lost or stolen key can be replaced without a new version of the app. A set without such a backup
/// cannot be created. Source: RFC 7469 §4.3.
public struct PinSet: Sendable, Hashable {
    /// The pins in use; at least one.
    public let pins: [Trust.Pin]
    /// The pins that are not in use yet; at least one, and none of `pins`.
    public let backups: [Trust.Pin]

    /// Throws if there is no pin or no backup, or if a backup is also one of the pins.
    public init(_ pins: [Trust.Pin], backups: [Trust.Pin]) throws(TrustError) {
        guard !pins.isEmpty else { throw TrustError("pins: expected at least one") }
        guard !backups.isEmpty else {
            throw TrustError(
                "backup pins: expected at least one; when the pinned key is lost, only a backup helps")
        }
        guard Set(pins).isDisjoint(with: backups) else {
            throw TrustError("backup pins: one is among the pins, too; expected the pin of another key")
        }
        self.pins = pins
        self.backups = backups
    }

    /// For callers that can name another key at any time, such as users of the command line. Apps cannot.
    package init(withoutBackup pins: [Trust.Pin]) throws(TrustError) {
        guard !pins.isEmpty else { throw TrustError("pins: expected at least one") }
        (self.pins, backups) = (pins, [])
    }

    /// All pins and backups: the client accepts both alike.
    public var all: [Trust.Pin] { pins + backups }
}
