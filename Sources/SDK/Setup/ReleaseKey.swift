import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The output of `countersign release add`: the key of one version of an app on one platform, and the
/// authority's keys.
///
/// It is in the app's binary, so an attacker who takes that apart has it. It says which version calls, and
/// opens no user's data.
public struct ReleaseKey: Sendable {
    /// Its public name.
    public let id: String
    /// The app's name at the authority; nil if the client learns it at the first sign-up or login.
    public let app: String?
    let credentials: Credentials
    let authorityKey: SigningKey?
    let nextAuthorityKey: SigningKey?
}

extension ReleaseKey {
    /// - Parameters:
    ///   - id: `key_id`, as it was printed.
    ///   - secret: as it was printed: 32 bytes or more in base64url.
    ///   - authorityKey: `authority_key`, an Ed25519 public key of 32 bytes in base64url. Without it, only a
    ///     pinned certificate authenticates the server, and the client cannot verify refusals (an unknown key
    ///     id, a wrong clock, the end of a session). Creating a client whose trust does not pin the server's
    ///     certificate either fails, unless ``CountersignOptions/missingAuthorityKey`` allows it.
    ///   - nextAuthorityKey: `next_authority_key`, the key that the authority rotates to. With it, a rotation
    ///     goes unnoticed; without it, the client believes no answer of the authority afterwards. Once the
    ///     client has seen an answer under this key, it refuses those under `authorityKey`.
    ///   - app: its name there.
    public init(
        id: String, secret: String, authorityKey: String? = nil, nextAuthorityKey: String? = nil,
        app: String? = nil
    ) throws(CountersignError) {
        guard let keyID = KeyID(id) else {
            throw .misuse("release key: id: expected 1 to 64 visible ASCII characters")
        }
        guard let bytes = Base64.decode(secret, as: .url), bytes.count >= 32 else {
            throw .misuse("release key: secret: expected 32 bytes or more in base64url")
        }
        try ReleaseKey.check(authorityKey, next: nextAuthorityKey, secret: secret)
        let credentials = Credentials(keyID: keyID, key: SigningKey(Secret(copying: bytes.span)))
        self.init(
            id: id, app: app, credentials: credentials,
            authorityKey: try ReleaseKey.read(authorityKey, named: "authority key"),
            nextAuthorityKey: try ReleaseKey.read(nextAuthorityKey, named: "next authority key"))
    }

    private static func check(_ key: String?, next: String?, secret: String) throws(CountersignError) {
        guard key != secret, next != secret else {
            throw .misuse(
                """
                release key: authority key: it is the release's secret; expected the `authority_key` that \
                was printed beside it
                """
            )
        }
        guard next == nil || key != nil else {
            throw .misuse("release key: next authority key: expected the authority key, too")
        }
        guard next == nil || next != key else {
            throw .misuse(
                "release key: next authority key: it is the authority key; expected the "
                    + "`next_authority_key` that was printed beside it")
        }
    }

    private static func read(_ text: String?, named name: String) throws(CountersignError) -> SigningKey? {
        guard let text else { return nil }
        guard let bytes = Base64.decode(text, as: .url), let key = try? PublicKey(ed25519: bytes) else {
            throw .misuse("release key: \(name): expected an Ed25519 public key of 32 bytes in base64url")
        }
        return SigningKey(key)
    }
}

extension ReleaseKey: CustomStringConvertible, CustomReflectable {
    /// The id. The secret is never printed.
    public var description: String { "release key \(id)" }

    /// A dump shows no more than a log does.
    public var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
