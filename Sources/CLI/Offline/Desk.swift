import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What `sign`, `verify` and `explain` have in common: a request on standard input, a key and a time.
struct Desk {
    var scheme: SchemeName
    var keyID: KeyID
    var key: SigningKey
    /// Whole Unix seconds.
    var at: Int64
    var policy: Policy
    /// What the key was made for; nil where that is not known.
    var platform: String?
    var version: String?
    var retirement: ReleaseKey.Retirement?
    /// Keys that the client may have used by mistake.
    var others: [KnownKey]
    /// A request that cannot be read is a verdict too.
    var request: Result<Request, Refusal>

    static let options: [Option] = [
        .value("scheme", "NAME", "the signature scheme (default: message-signatures)"),
        .value("key-id", "ID", "the key's id (needed)"),
        .secret, .secretFile, .algorithm,
        .value("at", "TIME", "the time to sign or judge by: \(Moment.expected) (default: now)"),
        .value("transport", "tls|plain", "how the request travels; it decides the default port (default: tls)"),
        .list("policy", "KEY=VALUE", "judge by this policy setting, as `app policy` spells it"),
        .value("timezone", "+08:00", "form-md5: the zone of the clock it sends (default: the policy's)"),
        .json,
    ]

    /// What judging takes beside the key.
    static let judgingOptions: [Option] = [
        .value("platform", "NAME", "what the key was made for; form-md5 signs it (default: not compared)"),
        .value("version", "TEXT", "the version that the key was made for, likewise"),
        .value("data", "DIR", "take the key, its scheme and policy, and the app's other releases from here"),
    ]

    static let notes = """
        The request is read from standard input as raw HTTP/1.1; its lines may end in LF. The secret comes from --secret,
        --secret-file or COUNTERSIGN_SECRET.

        \(KeyText.explanation)
        """

    init(_ run: Invocation) throws(Fault) {
        keyID = try run.keyID(run.requiredOption("key-id"), at: "--key-id")
        let kept = try Kept(run, keyID)
        scheme = try run.schemeName(default: kept?.release.scheme ?? .messageSignatures)
        guard scheme != .token else { throw Invocation.unsignedScheme }
        if let given = try run.secretText() {
            key = try KeyText.key(given.text, bare: .asPrinted(scheme), algorithm: run.algorithm(), at: given.place)
            guard key.publicKey == nil || scheme == .messageSignatures else {
                throw Fault(.usage, "\(given.place): \(scheme.rawValue) has shared secrets; expected one")
            }
        } else if let kept {
            key = kept.release.key
        } else {
            throw Fault(.usage, "the secret is missing: expected --secret, --secret-file or COUNTERSIGN_SECRET")
        }
        at = try Desk.time(run)
        policy = try Desk.policy(run, scheme, kept?.release.policy ?? Policy())
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
            others.append(KnownKey(try SecretText.secret(text, bare: .asPrinted(scheme), at: path), name: path))
        }
        let transport = try Desk.transport(run)
        let bytes = try run.console.read()
        do {
            request = .success(try RawRequest.read(bytes, transport: transport))
        } catch {
            request = .failure(error)
        }
    }

    private static func time(_ run: Invocation) throws(Fault) -> Int64 {
        guard let text = run.arguments.value("at") else { return run.now }
        return try Moment.given(text, as: "at", now: run.now)
    }

    private static func transport(_ run: Invocation) throws(Fault) -> Request.Transport {
        switch run.arguments.value("transport") {
        case nil, "tls": return .tls
        case "plain": return .plain
        case let text?: throw Fault(.usage, "--transport `\(text)`: expected tls or plain")
        }
    }

    /// The scheme that was asked for may speak; all else is as the app has it, or one that set nothing.
    private static func policy(_ run: Invocation, _ scheme: SchemeName, _ kept: Policy) throws(Fault) -> Policy {
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
    func explanation() throws(Fault) -> Explanation? {
        guard case .success(let request) = request else { return nil }
        let question = question
        return try Waiting.run { () async throws(Fault) in await Explanation(of: request, question) }
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
                ("verdict", "refused"), ("code", .string(refusal.code.name)), ("title", .string(refusal.code.title)),
                ("detail", .string(refusal.detail)),
            ]
        }
    }
}

/// What a deployment knows of a key, where `--data` names one.
private struct Kept {
    let release: ReleaseKey
    let siblings: [ReleaseKey]

    init?(_ run: Invocation, _ id: KeyID) throws(Fault) {
        guard run.arguments.value("data") != nil else { return nil }
        let deployment = try run.deployment()
        defer { deployment.store.close() }
        let keys = try LiveKeys(deployment)
        guard let release = try keys.find(id) else { throw Fault(.failed, "\(id): no such key in this data folder") }
        self.release = release
        siblings = keys.others(beside: release)
    }
}
