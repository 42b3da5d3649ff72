import CountersignSeal
import CountersignWire

/// The functions that the field's formulas are made of, over text, in lower-case hexadecimal: as a script of a few lines has them.
enum FieldHashing {
    static func md5(_ text: String) -> String { md5(Array(text.utf8)) }

    static func md5(_ bytes: [UInt8]) -> String { Hex.encode(MD5.digest(bytes.span).span) }

    static func hmacMD5(_ text: String, key: String) -> String {
        let (message, key) = (Array(text.utf8), Array(key.utf8))
        return Hex.encode(HMACMD5.authenticate(message.span, key: key.span).span)
    }

    static func hmacSHA256(_ text: String, key: Secret) -> String {
        let message = Array(text.utf8)
        let mac = key.withExposedBytes { key in OtherHash.sha256.hmac(key: key, message.span) }
        return Hex.encode(mac.span)
    }

    static func hmacSHA256(_ text: String, key: [UInt8]) -> [UInt8] {
        let message = Array(text.utf8)
        return OtherHash.sha256.hmac(key: key.span, message.span)
    }

    static func sha256(_ bytes: [UInt8]) -> String { Hex.encode(SHA256.digest(bytes.span).span) }

    /// Compared byte by byte until one differs, as `==` does everywhere: how long it takes tells how far somebody got.
    static func isSame(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
}

extension Secret {
    /// The text of a key that lies in an app.
    var fieldText: String {
        withExposedBytes { bytes in bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }
    }
}
