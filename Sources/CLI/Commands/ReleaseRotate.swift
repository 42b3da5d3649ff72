import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Command {
    static let releaseRotate = Command(
        words: ["release", "rotate"], summary: "let a new key follow a release's key, both valid for a while",
        positionals: [Positional(name: "KEY_ID")],
        options: [
            .flag("promote", meaning: "make the next key the only one: from now on the old one is refused"),
            .flag("cancel", meaning: "drop the next key again"),
            .value(
                "algorithm", placeholder: "NAME",
                meaning: "message-signatures: what the next key is for (needed after a key pair)"),
            .value(
                "public-key", placeholder: "F", meaning: "a PEM file with the public half of the next key"),
            .secret, .secretFile, .secretStdin, .data, .json,
        ],
        notes: """
            Without --promote and --cancel, makes a next key under the same key id, or takes one that is \
            brought along, and
            prints it, once. Both keys verify until one of them is dropped. `countersign meter` counts the \
            requests under
            each, and so tells when the old one may go.
            """
    ) { (run) throws(OperationalError) in
        let id = try run.keyID(run.required("KEY_ID"), at: "KEY_ID")
        switch try RotationStep(run.arguments) {
        case .begin: try begin(run, id: id)
        case .promote:
            try run.deployment().promoteNextKey(of: id)
            try run.print(["key_id": .string(id.description), "next_key": .bool(false)]) {
                "the next key of \(id) is its key now; the old one is refused"
            }
        case .cancel:
            try run.deployment().dropNextKey(of: id)
            try run.print(["key_id": .string(id.description), "next_key": .bool(false)]) {
                "the next key of \(id) is dropped"
            }
        }
        return .success
    }

    private enum RotationStep {
        case begin, promote, cancel

        init(_ arguments: Arguments) throws(OperationalError) {
            let brings = ["secret", "secret-file", "secret-stdin", "public-key", "algorithm"]
                .contains { arguments.has($0) }
            switch (arguments.has("promote"), arguments.has("cancel")) {
            case (false, false): self = .begin
            case (true, false) where !brings: self = .promote
            case (false, true) where !brings: self = .cancel
            default: throw OperationalError(.usage, message: "expected one of --promote, --cancel and a key")
            }
        }
    }

    private static func begin(_ run: Invocation, id: KeyID) throws(OperationalError) {
        let deployment = try run.deployment()
        let key = try nextKey(run, release: try deployment.release(id), deployment: deployment)
        try deployment.addNextKey(key.material, to: id)
        var members: [(name: String, value: JSONValue)] = [
            ("key_id", .string(id.description)), ("next_key", .bool(true)),
        ]
        if let shown = key.shown { members.append((shown.name, .string(shown.text))) }
        let warning = key.sharingWarning(of: deployment, besides: id)
        if let warning { members.append(("warnings", .array([.string(warning)]))) }
        try run.print(.object(members)) {
            guard let shown = key.shown else { return "key_id: \(id)" }
            return "key_id: \(id)\n" + (shown.name == "secret" ? "secret: \(shown.text)" : shown.text)
        }
        if let warning { run.console.note("warning: \(warning)") }
        run.console.note(
            "note: both keys verify now; `countersign meter` shows the share of requests with the next one, "
                + "--promote drops the old one"
        )
    }

    /// One that is brought along, or a new one of the kind that `release add` makes.
    private static func nextKey(
        _ run: Invocation, release: Release, deployment: Deployment
    ) throws(OperationalError) -> NewReleaseKey {
        guard release.scheme != .token else {
            throw OperationalError(
                .usage, message: "release \(release.id): of scheme token, which has no key")
        }
        let algorithm = try run.algorithm()
        let isPair = run.arguments.has("public-key") || (algorithm != nil && algorithm != .hmacSHA256)
        // The environment's secret is a signer's: it must not become a key because it happens to be there.
        if !isPair, let given = try run.secretText(), given.place != Invocation.secretVariable {
            let secret = try SecretText.secret(given.text, bare: .theKeyItself, at: given.place)
            return NewReleaseKey(
                id: release.id, material: .secret(secret),
                shown: ("secret", String(decoding: given.text, as: UTF8.self)))
        }
        let hadPair = try deployment.key(of: release).publicKey != nil
        guard isPair || algorithm != nil || !hadPair else {
            throw OperationalError(
                .usage,
                message:
                    "release \(release.id) has a key pair: expected --public-key, --algorithm ed25519 for a "
                    + "new pair, or a secret"
            )
        }
        return try NewReleaseKey.make(run, scheme: release.scheme)
    }
}
