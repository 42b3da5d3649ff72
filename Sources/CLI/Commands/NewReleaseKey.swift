import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The key that `release add` or `release rotate` stores, and what it prints of it, this once.
struct NewReleaseKey {
    var id: KeyID
    var material: KeyMaterial
    /// The value that is printed and not stored: the shared secret as text, or the private key that was just
    /// made; nil if the caller has it already.
    var shown: (name: String, text: String)?

    var algorithm: KeyAlgorithm {
        switch material {
        case .secret: .hmacSHA256
        case .publicKey(let key): key.algorithm
        }
    }

    static func make(_ run: Invocation, scheme: SchemeName) throws(OperationalError) -> NewReleaseKey {
        if scheme == .token { return try withoutKey(run) }
        let algorithm = try run.algorithm()
        let file = run.arguments.value("public-key")
        guard file != nil || (algorithm != nil && algorithm != .hmacSHA256) else {
            return try sharedSecret(run, scheme: scheme)
        }
        guard scheme == .messageSignatures else {
            throw OperationalError(
                .usage,
                message: "\(scheme.rawValue) has shared secrets; --algorithm and --public-key are not for it")
        }
        guard run.arguments.value("secret") == nil, run.arguments.value("secret-file") == nil,
            !run.arguments.has("secret-stdin")
        else {
            throw OperationalError(.usage, message: "a secret and a key pair are given; expected one of them")
        }
        let id = try run.keyID(run.arguments.value("key-id") ?? randomID(), at: "--key-id")
        if let file {
            return NewReleaseKey(
                id: id, material: .publicKey(try KeyText.publicKey(file, algorithm: algorithm)))
        }
        guard algorithm == .ed25519 else {
            throw OperationalError(
                .usage,
                message:
                    "--public-key is missing: only for ed25519 is a pair made here; expected a PEM file with "
                    + "the public key"
            )
        }
        let seed = Secret(random: 32)
        do {
            return NewReleaseKey(
                id: id, material: .publicKey(try PrivateKey(ed25519Seed: seed).publicKey),
                shown: ("private_key", PrivateKey.pem(ed25519Seed: seed).withExposedBytes { $0.text }))
        } catch {
            throw OperationalError(
                .failed, message: "the key pair that was made is none: \(error)")
        }
    }

    /// A release for scheme `token`, whose callers do not sign. Its stored secret is random and never shown.
    private static func withoutKey(_ run: Invocation) throws(OperationalError) -> NewReleaseKey {
        for option in ["secret", "secret-file", "secret-stdin", "public-key", "algorithm"]
        where run.arguments.has(option) {
            throw OperationalError(.usage, message: "--\(option): a release of scheme token has no key")
        }
        return NewReleaseKey(
            id: try run.keyID(run.arguments.value("key-id") ?? randomID(), at: "--key-id"),
            material: .secret(Secret(random: 32)))
    }

    private static func sharedSecret(_ run: Invocation, scheme: SchemeName) throws(OperationalError)
        -> NewReleaseKey
    {
        let given = try run.secretText()
        switch (run.arguments.value("key-id"), given) {
        case (let id?, let given?):
            guard !PEM.looksLike(given.text.span) else {
                throw OperationalError(
                    .usage, message: "\(given.place): a PEM file; expected a shared secret, or --public-key")
            }
            let secret = try SecretText.secret(given.text, bare: .theKeyItself, at: given.place)
            return NewReleaseKey(
                id: try run.keyID(id, at: "--key-id"), material: .secret(secret),
                shown: ("secret", String(decoding: given.text, as: UTF8.self)))
        case (.some, nil):
            throw OperationalError(
                .usage, message: "--key-id: expected the secret that belongs to it, too (--secret-stdin)")
        case (nil, let given?) where given.place != Invocation.secretVariable:
            throw OperationalError(.usage, message: "the secret is given without --key-id")
        case (nil, _):
            let bytes = SystemRandom().bytes(32)
            let text = Base64.encode(bytes.span, as: .url)
            let key = scheme == .messageSignatures ? bytes : Array(text.utf8)
            return NewReleaseKey(
                id: try run.keyID(randomID(), at: "key id"), material: .secret(Secret(copying: key.span)),
                shown: ("secret", text))
        }
    }

    /// That other releases than `release` (nil: the key's own) hold the same secret; nil where none does,
    /// and where the store cannot be asked: the release is in it by then, and what it is told with must be
    /// shown.
    func sharingWarning(of deployment: Deployment, besides release: KeyID? = nil) -> String? {
        guard case .secret(let secret) = material,
            let sharing = try? deployment.releases(sharing: secret, besides: release ?? id),
            !sharing.isEmpty
        else { return nil }
        let others = sharing.map(\.description)
        let named =
            others.prefix(4).joined(separator: ", ")
            + (others.count > 4 ? " and \(others.count - 4) more" : "")
        return
            "this is also the secret of \(named): a caller with it can sign for each of them, and retiring "
            + "one of them excludes no caller; expected a separate secret for each version"
    }

    private static func randomID() -> String { "r_" + Base64.encode(SystemRandom().bytes(12).span, as: .url) }
}
