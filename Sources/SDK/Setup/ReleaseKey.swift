import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What `countersign release add` has printed: the key of one version of an app on one platform, and the authority's.
///
/// It is in the app's binary, so whoever takes that apart has it. It says which version calls, and opens nothing that is a user's.
public struct ReleaseKey: Sendable {
    /// Its public name.
    public let id: String
    /// The app as the authority calls it; nil where it is to be learnt at the first sign-up or login.
    public let app: String?
    let credentials: Credentials
    let authorityKey: SigningKey?
}

extension ReleaseKey {
    /// - Parameters:
    ///   - id: `key_id`, as it was printed.
    ///   - secret: as it was printed: 32 bytes or more in base64url.
    ///   - authorityKey: `authority_key`, an Ed25519 public key of 32 bytes in base64url. Without it, only a pinned
    ///     certificate tells who answers, and refusals (an unknown key id, a wrong clock, the end of a session) cannot be
    ///     verified. A client whose trust does not pin the server's certificate either is not made, unless
    ///     ``CountersignOptions/missingAuthorityKey`` says so.
    ///   - app: its name there.
    public init(id: String, secret: String, authorityKey: String? = nil, app: String? = nil) throws(CountersignError) {
        guard let keyID = KeyID(id) else {
            throw .misuse("release key: id: expected 1 to 64 visible ASCII characters")
        }
        guard let bytes = Base64.decode(secret, .url), bytes.count >= 32 else {
            throw .misuse("release key: secret: expected 32 bytes or more in base64url")
        }
        guard authorityKey != secret else {
            throw .misuse(
                "release key: authority key: it is the release's secret; expected the `authority_key` that was printed beside it"
            )
        }
        let credentials = Credentials(keyID: keyID, key: SigningKey(Secret(copying: bytes.span)))
        self.init(id: id, app: app, credentials: credentials, authorityKey: try ReleaseKey.read(authorityKey))
    }

    private static func read(_ text: String?) throws(CountersignError) -> SigningKey? {
        guard let text else { return nil }
        guard let bytes = Base64.decode(text, .url), let key = try? PublicKey(ed25519: bytes) else {
            throw .misuse("release key: authority key: expected an Ed25519 public key of 32 bytes in base64url")
        }
        return SigningKey(key)
    }
}

extension ReleaseKey: CustomStringConvertible, CustomReflectable {
    /// Its id. The secret is never printed.
    public var description: String { "release key \(id)" }

    /// The same for who dumps it.
    public var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
