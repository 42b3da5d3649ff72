import CountersignSeal
import CountersignWire

/// The public half of an Ed25519 key as others fetch it. Source: RFC 7517, RFC 8037 §2.
package struct JWK: Sendable {
    private let x: String
    /// The key's RFC 7638 thumbprint: SHA-256 over its required members in their one order, in base64url.
    package let id: String

    /// `publicHalf` is 32 bytes.
    package init(publicHalf: [UInt8]) {
        x = Base64.encode(publicHalf.span, .url)
        let required: JSONValue = ["crv": "Ed25519", "kty": "OKP", "x": .string(x)]
        id = Base64.encode(SHA256.digest(Array(required.text.utf8).span).span, .url)
    }

    var json: JSONValue {
        [
            "kty": "OKP", "crv": "Ed25519", "x": .string(x), "kid": .string(id), "use": "sig", "alg": "EdDSA",
        ]
    }
}
