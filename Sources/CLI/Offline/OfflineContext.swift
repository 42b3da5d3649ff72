import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire

/// What `sign`, `verify` and `explain` have in common: a request on standard input, a key and a time.
struct OfflineContext {
    var scheme: SchemeName
    var keyID: KeyID
    var key: SigningKey
    /// Whole Unix seconds.
    var at: Int64
    var policy: Policy
    /// What the key was made for; nil where that is not known.
    var platform: String?
    var version: String?
    var retirement: AppRelease.Retirement?
    /// Keys that the client may have used by mistake.
    var others: [KnownKey]
    /// A request that cannot be read is a verdict too.
    var request: Result<Request, Refusal>

    static let options: [Option] = [
        .scheme(meaning: "the signature scheme (default: message-signatures)"),
        .value("key-id", placeholder: "ID", meaning: "the key's id (needed)"),
        .secret, .secretFile, .algorithm,
        .value(
            "at", placeholder: "TIME",
            meaning: "the time to sign or judge by: \(TimeText.expected) (default: now)"),
        .value(
            "transport", placeholder: "tls|plain",
            meaning: "how the request travels; it decides the default port (default: tls)"),
        .list(
            "policy", placeholder: "KEY=VALUE",
            meaning: "judge by this policy setting, as `app policy` spells it"),
        .value(
            "timezone", placeholder: "+08:00",
            meaning: "form-md5: the zone of the clock it sends (default: the policy's)"),
        .json,
    ]

    /// What judging takes beside the key.
    static let verificationOptions: [Option] = [
        .value(
            "platform", placeholder: "NAME",
            meaning: "what the key was made for; form-md5 signs it (default: not compared)"),
        .value("version", placeholder: "TEXT", meaning: "the version that the key was made for, likewise"),
        .value(
            "data", placeholder: "DIR",
            meaning: "take the key, its scheme and policy, and the app's other releases from here"),
    ]

    static let notes = """
        The request is read from standard input as raw HTTP/1.1; its lines may end in LF. The secret comes \
        from --secret,
        --secret-file or COUNTERSIGN_SECRET.

        \(KeyText.explanation)
        """

    init(_ run: Invocation) throws(OperationalError) {
        keyID = try run.keyID(run.requiredOption("key-id"), at: "--key-id")
        let kept = try DeploymentKeys(run, id: keyID)
        scheme = try run.schemeName(default: kept?.release.scheme ?? .messageSignatures)
        guard scheme != .token else { throw Invocation.unsignedScheme }
        if let given = try run.secretText() {
            key = try KeyText.key(
                given.text, bare: .asPrinted(scheme), algorithm: run.algorithm(), at: given.place)
            guard key.publicKey == nil || scheme == .messageSignatures else {
                throw OperationalError(
                    .usage, message: "\(given.place): \(scheme.rawValue) has shared secrets; expected one")
            }
        } else if let kept {
            key = kept.release.key
        } else {
            throw OperationalError(
                .usage,
                message: "the secret is missing: expected --secret, --secret-file or COUNTERSIGN_SECRET")
        }
        at = try OfflineContext.time(run)
        policy = try OfflineContext.policy(run, scheme: scheme, base: kept?.release.policy ?? Policy())
        platform = run.arguments.value("platform")?.lowercased() ?? kept?.release.platform
        version = run.arguments.value("version") ?? kept?.release.version
        retirement = kept?.release.retirement
        others = kept?.siblings.map(KnownKey.init(of:)) ?? []
        for (index, text) in run.arguments.values("other-secret").enumerated() {
            let place = "--other-secret \(index + 1)"
            let secret = try SecretText.secret(Array(text.utf8), bare: .asPrinted(scheme), at: place)
            others.append(KnownKey(secret, name: place))
        }
        for path in run.arguments.values("other-secret-file") {
            let text = Invocation.trimmed(try Console.readFile(path, limit: 65_536))
            others.append(
                KnownKey(try SecretText.secret(text, bare: .asPrinted(scheme), at: path), name: path))
        }
        let transport = try OfflineContext.transport(run)
        let bytes = try run.console.read()
        do {
            request = .success(try RequestFile.read(bytes, transport: transport))
        } catch {
            request = .failure(error)
        }
    }

    private static func time(_ run: Invocation) throws(OperationalError) -> Int64 {
        guard let text = run.arguments.value("at") else { return run.now }
        return try TimeText.parse(text, option: "at", now: run.now)
    }

    private static func transport(_ run: Invocation) throws(OperationalError) -> Request.Transport {
        switch run.arguments.value("transport") {
        case nil, "tls": return .tls
        case "plain": return .plain
        case let text?:
            throw OperationalError(.usage, message: "--transport `\(text)`: expected tls or plain")
        }
    }

    /// The scheme that was asked for may speak; all else is as the app has it, or one that set nothing.
    private static func policy(_ run: Invocation, scheme: SchemeName, base kept: Policy)
        throws(OperationalError) -> Policy
    {
        var policy = kept
        policy.schemes = [scheme]
        for assignment in run.arguments.values("policy") {
            let (key, value) = try PolicyKey.change(assignment)
            if let value { key.set(value, in: &policy) }
        }
        if run.arguments.has("timezone") { policy.timezoneOffset = try run.timezoneOffset() }
        return policy
    }

    var question: Explanation.Question {
        var question = Explanation.Question(
            scheme: scheme, keyID: keyID, key: key, at: at, policy: policy)
        question.platform = platform
        question.version = version
        question.retirement = retirement
        question.others = others
        return question
    }

    /// With every stage on the way; nil where there was no request to judge.
    func explanation() throws(OperationalError) -> Explanation? {
        guard case .success(let request) = request else { return nil }
        let question = question
        return try BlockingTask.run { () async throws(OperationalError) in
            await Explanation(of: request, question: question)
        }
    }

    func verdict(_ explanation: Explanation?) -> Explanation.Verdict {
        switch request {
        case .success: explanation?.verdict ?? .refused(Refusal(.malformed))
        case .failure(let refusal): .refused(refusal)
        }
    }

    /// The verdict for scripts: an object whose `verdict` is `accepted` or `refused`.
    static func json(_ verdict: Explanation.Verdict) -> [(name: String, value: JSONValue)] {
        switch verdict {
        case .accepted: [("verdict", "accepted")]
        case .refused(let refusal):
            [
                ("verdict", "refused"), ("code", .string(refusal.code.name)),
                ("title", .string(refusal.code.title)),
                ("detail", .string(refusal.detail)),
            ]
        }
    }
}

/// What a deployment knows of a key, where `--data` names one.
private struct DeploymentKeys {
    let release: AppRelease
    let siblings: [AppRelease]

    init?(_ run: Invocation, id: KeyID) throws(OperationalError) {
        guard run.arguments.value("data") != nil else { return nil }
        let deployment = try run.deployment()
        defer { deployment.store.close() }
        let keys = try ReleaseKeyDirectory(deployment)
        guard let release = try keys.release(for: id) else {
            throw OperationalError(.failed, message: "\(id): no such key in this data folder")
        }
        self.release = release
        siblings = keys.siblings(of: release)
    }
}
