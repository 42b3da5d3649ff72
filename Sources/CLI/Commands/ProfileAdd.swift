import CountersignGate
import CountersignAuthority
import CountersignClient
import CountersignSchemes
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire
import Glibc

extension Command {
    static let profileAdd = Command(
        words: ["profile", "add"], summary: "keep where a server is and the key to call it with",
        positionals: [Positional(name: "PROFILE")],
        options: [
            .value("url", placeholder: "URL", meaning: "where the server is"),
            .value("key-id", placeholder: "ID", meaning: "the release key's id"),
            .secretStdin, .secretFile, .algorithm,
            .value(
                "authority-key", placeholder: "K",
                meaning: "the server's `authority_key`: its answers are verified with it"),
            .nextAuthorityKey,
            .value(
                "app", placeholder: "APP",
                meaning: "how the server calls the app (default: as the server says)"),
            .value(
                "prefix", placeholder: "PATH",
                meaning: "where the server's own routes begin (default: /countersign/v1)"),
            .list(
                "pin", placeholder: "sha256/…",
                meaning: "a public key to expect there; another one for the next"),
            .value(
                "ca", placeholder: "F",
                meaning: "a PEM file of the authorities to trust there, in place of the system's"),
            .flag(
                "bearer-secrets-to-any-certificate",
                meaning:
                    "send passwords (`login --password-login`) and bearer tokens even if no --pin and no "
                    + "--ca identifies the server"
            ),
            .value(
                "vault", placeholder: "KIND",
                meaning: "where the session is stored: file or passphrase (default: file, or as it was)"),
            .scheme(meaning: "how to sign (default: message-signatures)"),
            .value("platform", placeholder: "NAME", meaning: "form-md5: the app's platform"),
            .value("version", placeholder: "V", meaning: "form-md5: the app's version"),
            .value(
                "timezone", placeholder: "+08:00",
                meaning: "form-md5: the zone of the clock it sends (default: UTC)"),
            .formMD5Key,
            .json,
        ],
        notes: """
            A profile is a folder in ~/.config/countersign (or XDG_CONFIG_HOME), or any folder, if it is
            written with a `/`. The command replaces a profile of that name and keeps its session; to change
            --vault, sign out first.

            --vault file: sealed, with the key beside it; for scripts. passphrase: every command asks for it,
            or reads \(VaultPassphrase.variable).

            \(KeyText.explanation)
            """
    ) { (run) throws(OperationalError) in
        let name = try run.required("PROFILE")
        let folder = try ProfileFolder(name, environment: run.environment)
        var profile = try profile(run)
        guard let given = try run.secretText() else {
            throw OperationalError(
                .usage,
                message: "the secret is missing: expected --secret-stdin, --secret-file or COUNTERSIGN_SECRET"
            )
        }
        let key = try KeyText.key(
            given.text, bare: .asPrinted(profile.scheme), algorithm: profile.algorithm, at: given.place)
        guard key.publicKey == nil || profile.scheme == .messageSignatures else {
            throw OperationalError(
                .usage, message: "\(given.place): \(profile.scheme.rawValue) has shared secrets; expected one"
            )
        }
        guard key.signs else {
            throw OperationalError(
                .usage, message: "\(given.place): a public key does not sign; expected the private one")
        }
        try chooseVault(of: &profile, name: name, folder: folder, run: run)
        try folder.write(profile, secret: given.text)
        let json: JSONValue = [
            "profile": .string(name), "folder": .string(folder.path), "settings": profile.json,
        ]
        try run.print(json) { "profile \(name) is in \(folder.path)" }
        return .success
    }

    /// As asked for, else as it was. A new passphrase is asked for and tried out now.
    private static func chooseVault(
        of profile: inout Profile, name: String, folder: ProfileFolder, run: Invocation
    ) throws(OperationalError) {
        let wanted = try run.arguments.value("vault").map { (text) throws(OperationalError) in
            try Profile.vault(text, at: "--vault")
        }
        let earlier = try folder.profile()
        profile.vault = wanted ?? earlier?.vault ?? .file
        if let earlier, earlier.vault != profile.vault {
            try discardVault(of: earlier, name: name, folder: folder, run: run)
        }
        try folder.make()
        guard profile.vault == .passphrase, access(folder.vault, F_OK) != 0 else { return }
        try ProfileVault(passphrase: VaultPassphrase(run: run).readNew(), folder: folder).verifyUsable()
    }

    /// What is left of a vault that another takes the place of: a device's keys, which the next login makes
    /// anew.
    private static func discardVault(
        of earlier: Profile, name: String, folder: ProfileFolder, run: Invocation
    ) throws(OperationalError) {
        let vault = try ProfileVault(earlier, folder: folder, run: run)
        guard try !ProfileSession.isSignedIn(earlier, in: vault) else {
            throw OperationalError(
                .failed,
                message:
                    "profile \(name): an account is signed in; run `countersign logout --profile \(name)` "
                    + "before changing where the session is stored"
            )
        }
        do {
            for item in try vault.vault.list() { try vault.vault.erase(item) }
        } catch {
            throw ProfileVault.operationalError(for: error)
        }
        for file in [folder.vault, folder.vaultKey] { unlink(file) }
    }

    private static func profile(_ run: Invocation) throws(OperationalError) -> Profile {
        let (origin, target) = try Origin.split(run.requiredOption("url"))
        guard target == [UInt8(ascii: "/")] else {
            throw OperationalError(.usage, message: "--url: expected no path; requests name theirs")
        }
        let keyID = try run.keyID(run.requiredOption("key-id"), at: "--key-id")
        var profile = Profile(url: origin.description, keyID: keyID, scheme: try run.schemeName())
        for text in run.arguments.values("pin") { profile.pins.append(try pin(text)) }
        profile.algorithm = try run.algorithm()
        if let text = run.arguments.value("authority-key") {
            profile.authorityKey = try Profile.authorityKey(text)
        }
        profile.nextAuthorityKey = try run.nextAuthorityKey()
        profile.app = run.arguments.value("app")
        if run.arguments.has("bearer-secrets-to-any-certificate") {
            profile.bearerSecrets = .toAnyCertificateThatVerifies
        }
        if let text = run.arguments.value("prefix") {
            profile.prefix = try Profile.prefix(text, at: "--prefix")
        }
        profile.platform = run.arguments.value("platform") ?? ""
        profile.version = run.arguments.value("version") ?? ""
        if profile.scheme == .formMD5, profile.platform.isEmpty || profile.version.isEmpty {
            throw OperationalError(
                .usage,
                message:
                    "form-md5 names platform and version in each request: expected --platform and --version")
        }
        profile.timezoneOffset = try run.timezoneOffset()
        if let key = try run.formMD5Key() { profile.formMD5Key = key }
        if let file = run.arguments.value("ca") {
            guard let absolute = realpath(file, nil) else { throw Errno.error("--ca \(file)", kind: .usage) }
            defer { free(absolute) }
            profile.certificates = String(cString: absolute)
            _ = try profile.authorities()
        }
        return profile
    }

    private static func pin(_ text: String) throws(OperationalError) -> Trust.Pin {
        do {
            return try Trust.Pin(text)
        } catch {
            throw OperationalError(.usage, message: "--pin: \(error)")
        }
    }
}

extension Option {
    package static let formMD5Key = Option.value(
        "form-md5-key", placeholder: "pair|appended",
        meaning: "form-md5: where the private key goes before the MD5 (default: pair)")
}

extension Option {
    package static let nextAuthorityKey = Option.value(
        "next-authority-key", placeholder: "K",
        meaning: "the server's `next_authority_key`: the key that it rotates to")
}

extension Invocation {
    /// What `--next-authority-key` says; nil without it.
    package func nextAuthorityKey() throws(OperationalError) -> [UInt8]? {
        guard let text = arguments.value("next-authority-key") else { return nil }
        guard let current = arguments.value("authority-key"), current != text else {
            throw OperationalError(
                .usage, message: "--next-authority-key: expected --authority-key, too, with another key")
        }
        return try Profile.authorityKey(text)
    }

    /// What `--form-md5-key` says; nil without it.
    package func formMD5Key() throws(OperationalError) -> FormMD5.KeyPosition? {
        guard let text = arguments.value("form-md5-key") else { return nil }
        return try Profile.formMD5Key(text, at: "--form-md5-key")
    }

    /// What `--timezone` says, in seconds east of UTC, as an app's policy spells it.
    package func timezoneOffset() throws(OperationalError) -> Int {
        guard let zone = arguments.value("timezone") else { return 0 }
        var policy = Policy()
        let key = try PolicyKey.named("timezone")
        key.set(try key.canonical(zone), in: &policy)
        return policy.timezoneOffset
    }
}
