import CountersignSeal
import CountersignWire

/// A manifest on its way: `{"manifest":B,"signature":B}`, each in base64url without padding. The signature is Ed25519
/// (RFC 8032 §5.1) over the line `countersign pin manifest 1`, a line feed, and the manifest's bytes as they stand.
public struct SignedManifest: Sendable {
    /// Bytes that are read at most: some hundred hosts.
    public static let longest = 65_536

    /// What a signature for anything else cannot begin with.
    private static let context = Array("countersign pin manifest 1\n".utf8)

    private let manifest: [UInt8]
    private let signature: [UInt8]

    /// From its text.
    public init(json: [UInt8]) throws(ManifestProblem) {
        let reader = try ManifestReader(json, depth: 2)
        let root = try reader.object(reader.root, "the signed manifest", ["manifest", "signature"])
        guard let manifest = Base64.decode(try reader.text(root, "manifest"), .url),
            let signature = Base64.decode(try reader.text(root, "signature"), .url)
        else { throw .malformed("manifest and signature: expected base64url") }
        self.manifest = manifest
        self.signature = signature
    }

    /// The manifest, once one of `keys`, each an Ed25519 public key of 32 bytes, has been seen to have signed it. It is
    /// read after that only.
    public func verified(by keys: [[UInt8]]) throws(ManifestProblem) -> PinManifest {
        let message = SignedManifest.context + manifest
        for bytes in keys {
            guard let key = try? PublicKey(ed25519: bytes) else {
                throw .malformed("the manifest's key: expected an Ed25519 public key of 32 bytes")
            }
            guard key.verify(signature.span, of: message.span) == .equal else { continue }
            return try PinManifest(json: manifest)
        }
        throw .badSignature
    }

    /// The text of a manifest with its signature: made where the offline key is. Nil where the key is not one of Ed25519.
    package static func text(of manifest: [UInt8], signedBy key: PrivateKey) -> [UInt8]? {
        let message = context + manifest
        guard key.algorithm == .ed25519, let signature = key.sign(message.span) else { return nil }
        let json: JSONValue = [
            "manifest": .string(Base64.encode(manifest.span, .url)),
            "signature": .string(Base64.encode(signature.span, .url)),
        ]
        return Array(json.text.utf8)
    }
}
