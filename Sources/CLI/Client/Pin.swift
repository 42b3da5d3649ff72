import CountersignWire

/// The SHA-256 of a certificate's SubjectPublicKeyInfo: `sha256/` and Base64. Source: RFC 7469 §2.4, as apps write it.
struct Pin: Equatable, Sendable, CustomStringConvertible {
    let digest: [UInt8]

    init(digest: [UInt8]) { self.digest = digest }

    init?(_ text: String) {
        guard text.hasPrefix("sha256/"), let digest = Base64.decode(String(text.dropFirst(7)), .standard),
            digest.count == 32
        else { return nil }
        self.digest = digest
    }

    init(argument text: String) throws(Fault) {
        guard let pin = Pin(text) else {
            throw Fault(.usage, "--pin `\(text)`: expected sha256/ and 44 characters of Base64")
        }
        self = pin
    }

    var description: String { "sha256/\(Base64.encode(digest.span, .standard))" }
}
