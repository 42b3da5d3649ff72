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
            .value("platform", placeholder: "NAME", meaning: "ios, android, … (needed)"),
            .value(
                "version", placeholder: "V", meaning: "the app's version, as its clients write it (needed)"),
            .scheme(meaning: "how this version signs, or token (default: message-signatures)"),
            .value("key-id", placeholder: "ID", meaning: "bring a key along: its id (form-md5: the app_id)"),
            .value(
                "algorithm", placeholder: "NAME",
                meaning: "message-signatures: what the key is for (default: hmac-sha256)"),
            .value(
                "public-key", placeholder: "F",
                meaning: "a PEM file with the public key that callers' signatures verify under"),
            .secret, .secretFile, .secretStdin, .data, .json,
        ],
        notes: """
            Prints the key id, the secret and the authority's public keys, once: the secret is kept sealed \
            and never shown
            again. The app is built with both public keys: answers are signed with `authority_key` now, and \
            with
            `next_authority_key` after `answer-key rotate`.

            A secret that is made for message-signatures is 32 random bytes in base64url; for other schemes, \
            and where
            it is brought along, the text is the key as it stands, unless it begins with text:, hex: or \
            base64url:.

            With --algorithm ed25519 and no --public-key a pair is made, and its private key printed \
            instead, once: only
            the public half is kept. Pairs of other algorithms are made where they sign:
              openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
              openssl pkey -in key.pem -pubout -out public.pem

            A release of scheme token has no key, because its requests bear a token and no signature: its id \
            names
            the version in the meter, for `release retire` and to the backend. Which requests are its own is \
            told by
            the app's policy release-in.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let scheme = try run.releaseScheme()
        guard let platform = Platform(try run.requiredOption("platform")) else {
            throw OperationalError(
                .usage, message: "--platform: expected 1 to 32 letters, digits, `-` and `.`")
        }
        guard let version = Version(try run.requiredOption("version")) else {
            throw OperationalError(.usage, message: "--version: expected 1 to 32 visible ASCII characters")
        }
        let key = try NewReleaseKey.make(run, scheme: scheme)
        let deployment = try run.deployment()
        let draft =
            switch key.material {
            case .secret(let secret):
                ReleaseDraft(
                    app: app, platform: platform, version: version, scheme: scheme, id: key.id, secret: secret
                )
            case .publicKey(let publicKey):
                ReleaseDraft(
                    app: app, platform: platform, version: version, scheme: scheme, id: key.id,
                    publicKey: publicKey)
            }
        let issued = try deployment.addRelease(draft, at: run.now)
        let warnings = warnings(about: key, issued: issued, in: deployment)
        try show(run, key: key, issued: issued, warnings: warnings)
        for warning in warnings { run.console.note("warning: \(warning)") }
        try advise(run, key: key, issued: issued, app: try deployment.app(app))
        return .success
    }

    private static func show(
        _ run: Invocation, key: NewReleaseKey, issued: IssuedRelease, warnings: [String]
    ) throws(OperationalError) {
        let release = issued.release
        let answerKey = Base64.encode(issued.answerKey.span, as: .url)
        let nextAnswerKey = Base64.encode(issued.nextAnswerKey.span, as: .url)
        var members: [(name: String, value: JSONValue)] = [("key_id", .string(release.id.description))]
        if let shown = key.shown { members.append((shown.name, .string(shown.text))) }
        members += [
            ("authority_key", .string(answerKey)), ("next_authority_key", .string(nextAnswerKey)),
            ("app", .string(release.app.description)),
            ("platform", .string(release.platform.description)),
            ("version", .string(release.version.description)),
            ("scheme", .string(release.scheme.rawValue)),
        ]
        if release.scheme == .messageSignatures {
            members.append(("algorithm", .string(key.algorithm.rawValue)))
        }
        if !warnings.isEmpty { members.append(("warnings", .array(warnings.map { .string($0) }))) }
        try run.print(.object(members)) {
            var lines = ["key_id:        \(release.id)"]
            if let shown = key.shown, shown.name == "secret" { lines.append("secret:        \(shown.text)") }
            lines.append("authority_key: \(answerKey)")
            lines.append("next_authority_key: \(nextAnswerKey)")
            if let shown = key.shown, shown.name != "secret" { lines.append(shown.text) }
            return lines.joined(separator: "\n")
        }
    }

    /// What works, and makes requests less safe than they could be.
    private static func warnings(
        about key: NewReleaseKey, issued: IssuedRelease, in deployment: Deployment
    ) -> [String] {
        let release = issued.release
        var warnings: [String] = []
        if release.scheme == .token {
            return [
                "token protects the session and nothing else: an attacker who reads one request can send "
                    + "others in its name"
            ]
        }
        if !release.scheme.isRemembered {
            warnings.append(
                "\(release.scheme.rawValue) gives equal calls equal signatures and signs no time: a replay "
                    + "cannot be told from a second call, and will be accepted")
        }
        if release.scheme == .messageSignatures, issued.secret.count < 16 {
            warnings.append(
                "a secret of \(issued.secret.count) bytes can be guessed; expected 32 random ones")
        }
        let id = Array(release.id.description.utf8)
        if issued.secret.withExposedBytes({ span in
            span.count == id.count && id.indices.allSatisfy { span[$0] == id[$0] }
        }) {
            warnings.append("the secret is the key id, which every request shows")
        }
        return warnings + (key.sharingWarning(of: deployment).map { [$0] } ?? [])
    }

    /// What a token alone is not admitted without.
    private static func adviseOnTokens(_ run: Invocation, for app: App, policy: Policy) {
        var missing: [String] = []
        if policy.legacySession != .authority { missing.append("--set legacy-session=authority") }
        if policy.legacyHost == nil { missing.append("--set legacy-host=HOST") }
        if policy.releaseLocations.isEmpty { missing.append("--set release-in=PLACE") }
        guard !missing.isEmpty else { return }
        run.console.note(
            "note: requests of scheme token need more of the policy: "
                + "`countersign app policy \(app.name) \(missing.joined(separator: " "))`")
    }

    /// What is probably not meant.
    private static func advise(
        _ run: Invocation, key: NewReleaseKey, issued: IssuedRelease, app: App
    ) throws(OperationalError) {
        let release = issued.release
        let policy = try app.policy()
        if !policy.schemes.contains(release.scheme) {
            let names = (policy.schemes.map(\.rawValue) + [release.scheme.rawValue]).sorted().joined(
                separator: ",")
            run.console.note(
                "note: \(release.app)'s policy does not allow \(release.scheme.rawValue) yet: "
                    + "`countersign app policy \(release.app) --set schemes=\(names)`")
        }
        if release.scheme == .token { adviseOnTokens(run, for: app, policy: policy) }
        if key.algorithm == .rsaV15, policy.rsaV15 == .refused {
            run.console.note(
                "note: \(release.app)'s policy does not allow rsa-v1_5-sha256 yet: "
                    + "`countersign app policy \(release.app) --set rsa-v1_5=on`")
        }
        if release.scheme == .messageSignatures, issued.secret.count == 43 {
            run.console.note(
                "note: where this secret is used to sign, write it text:… if it could be read as base64url")
        }
    }
}
