import CountersignAuthority
import CountersignSeal
import CountersignTrust
import CountersignWire

/// The keys that pin manifests are signed and verified with, as people hand them over.
enum PinKey {
    static let publicOption = Option.value(
        "public-key", "K",
        "the public key that `pins keygen` printed; the manifest has to be signed with its other half")

    /// The 32 bytes, in base64url.
    static func text(of key: PublicKey) -> String {
        // What stands before them in DER says that they are Ed25519's. Source: RFC 8410 §4.
        let bytes = Array(key.der.suffix(32))
        return Base64.encode(bytes.span, .url)
    }

    static func privateKey(inFile path: String) throws(Fault) -> PrivateKey {
        guard let text = try KeyFile.read(path) else { throw Fault(.failed, "\(path): there is no such file") }
        do throws(KeyProblem) {
            return try text.withExposedBytes { (pem) throws(KeyProblem) in
                try PrivateKey(pem: pem, algorithm: .ed25519)
            }
        } catch {
            throw Fault(.failed, "\(path): expected \(error.expected)")
        }
    }

    /// What `--public-key` says.
    static func publicKey(_ run: Invocation) throws(Fault) -> [UInt8] {
        let text = try run.requiredOption("public-key")
        guard let key = Base64.decode(text, .url), key.count == 32 else {
            throw Fault(.usage, "--public-key: expected 43 characters of base64url, as `pins keygen` prints them")
        }
        return key
    }
}

/// A signed manifest whose signature holds.
struct VerifiedManifest {
    let text: String
    let manifest: PinManifest

    /// Checked as an app checks it.
    init(_ bytes: [UInt8], at place: String, signedWith key: [UInt8]) throws(Fault) {
        do throws(ManifestProblem) {
            manifest = try SignedManifest(json: bytes).verified(by: [key])
        } catch {
            throw Fault(.failed, "\(place): \(error)")
        }
        // JSON that was read is UTF-8.
        text = String(decoding: bytes, as: UTF8.self)
    }

    init(inFile path: String, signedWith key: [UInt8]) throws(Fault) {
        try self.init(try Console.readFile(path, limit: SignedManifest.longest), at: path, signedWith: key)
    }
}
