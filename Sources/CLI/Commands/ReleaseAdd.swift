import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignGate
import CountersignWire

extension Command {
    static let releaseAdd = Command(
        words: ["release", "add"], summary: "make the key of an app version, or bring one along",
        positionals: [Positional(name: "APP")],
        options: [
            .value("platform", "NAME", "ios, android, …"),
            .value("version", "V", "the app's version, as its clients write it"),
            .value("scheme", "NAME", "how this version signs (default: message-signatures)"),
            .value("key-id", "ID", "bring a key along: its id (form-md5: the app_id)"),
            .secret, .secretFile, .secretStdin, .data, .json,
        ],
        notes: """
            Prints the key id, the secret and the authority's public key, once: the secret is kept sealed and never shown
            again. One that is made for message-signatures is 32 random bytes in base64url; for other schemes, and where
            it is brought along, the text is the key as it stands, unless it begins with text:, hex: or base64url:.
            """
    ) { (run) throws(Fault) in
        let app = try run.appName()
        let scheme = try run.schemeName()
        guard let platform = Platform(try run.requiredOption("platform")) else {
            throw Fault(.usage, "--platform: expected 1 to 32 letters, digits, `-` and `.`")
        }
        guard let version = Version(try run.requiredOption("version")) else {
            throw Fault(.usage, "--version: expected 1 to 32 visible ASCII characters")
        }
        let key = try releaseKey(run, scheme)
        let deployment = try run.deployment()
        let issued = try deployment.addRelease(
            ReleaseDraft(
                app: app, platform: platform, version: version, scheme: scheme, id: key.id, secret: key.secret),
            at: run.now)
        let answerKey = Base64.encode(issued.answerKey.span, .url)
        try run.print([
            "key_id": .string(issued.release.id.description), "secret": .string(key.text),
            "authority_key": .string(answerKey), "app": .string(app.description),
            "platform": .string(platform.description), "version": .string(version.description),
            "scheme": .string(scheme.rawValue),
        ]) {
            """
            key_id:        \(issued.release.id)
            secret:        \(key.text)
            authority_key: \(answerKey)
            """
        }
        try warn(run, issued, try deployment.app(app))
        return .success
    }

    private struct NewKey {
        var id: KeyID
        var secret: Secret
        /// As it is printed, this once.
        var text: String
    }

    private static func releaseKey(_ run: Invocation, _ scheme: SchemeName) throws(Fault) -> NewKey {
        let given = try run.secretText()
        switch (run.arguments.value("key-id"), given) {
        case (let id?, let given?):
            let secret = try SecretText.secret(given.text, bare: .theKeyItself, at: given.place)
            return NewKey(
                id: try run.keyID(id, at: "--key-id"), secret: secret, text: String(decoding: given.text, as: UTF8.self)
            )
        case (.some, nil): throw Fault(.usage, "--key-id: expected the secret that belongs to it, too (--secret-stdin)")
        case (nil, let given?) where given.place != Invocation.secretVariable:
            throw Fault(.usage, "the secret is given without --key-id")
        case (nil, _):
            let random = SystemRandom()
            let bytes = random.bytes(32)
            let text = Base64.encode(bytes.span, .url)
            let id = try run.keyID("r_" + Base64.encode(random.bytes(12).span, .url), at: "key id")
            let key = scheme == .messageSignatures ? bytes : Array(text.utf8)
            return NewKey(id: id, secret: Secret(copying: key.span), text: text)
        }
    }

    /// What works, and yet is probably not meant.
    private static func warn(_ run: Invocation, _ issued: IssuedRelease, _ app: App) throws(Fault) {
        let release = issued.release
        let policy = try app.policy()
        if !release.scheme.isRemembered {
            run.console.note(
                "warning: \(release.scheme.rawValue) gives equal calls equal signatures and signs no time: a replay "
                    + "cannot be told from a second call, and will be accepted")
        }
        if !policy.schemes.contains(release.scheme) {
            let names = (policy.schemes.map(\.rawValue) + [release.scheme.rawValue]).sorted().joined(separator: ",")
            run.console.note(
                "note: \(release.app)'s policy does not allow \(release.scheme.rawValue) yet: "
                    + "`countersign app policy \(release.app) --set schemes=\(names)`")
        }
        if release.scheme == .messageSignatures, issued.secret.count < 16 {
            run.console.note(
                "warning: a secret of \(issued.secret.count) bytes can be guessed; expected 32 random ones")
        }
        if release.scheme == .messageSignatures, issued.secret.count == 43 {
            run.console.note(
                "note: where this secret is used to sign, write it text:… if it could be read as base64url")
        }
        let id = Array(release.id.description.utf8)
        if issued.secret.withExposedBytes({ span in
            span.count == id.count && id.indices.allSatisfy { span[$0] == id[$0] }
        }) {
            run.console.note("warning: the secret is the key id, which every request shows")
        }
    }
}
