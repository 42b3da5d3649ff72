import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let sign = Command(
        words: ["sign"], summary: "sign a request offline",
        options: OfflineContext.options + [
            .value("nonce", placeholder: "TEXT", meaning: "the nonce (default: a random one)"),
            .list(
                "component", placeholder: "NAME",
                meaning: "cover this too, such as @target-uri (message-signatures)"),
            .value(
                "platform", placeholder: "NAME",
                meaning: "form-md5: the app's platform, if the request does not name it"),
            .value("version", placeholder: "V", meaning: "form-md5: the app's version, likewise"),
            .value(
                "presign", placeholder: "SECONDS", meaning: "sigv4: sign in the query instead, for so long"),
        ] + RequestSigner.scopeOptions,
        notes: OfflineContext.notes + """


            Prints the signed request. What the scheme leaves unsigned, `explain` shows. Fields that nothing \
            covers
            are not passed on by a gateway, but for Accept, User-Agent and their like.
            """
    ) { (run) throws(OperationalError) in
        let context = try OfflineContext(run)
        let nonce = try run.arguments.value("nonce").map(Nonce.read) ?? Nonce.make(for: context.scheme)
        var draft: Draft
        switch context.request {
        case .success(let request): draft = Draft(request)
        case .failure(let refusal):
            throw OperationalError(.failed, message: "standard input: not an HTTP request: \(refusal.detail)")
        }
        var credentials = Credentials(
            keyID: context.keyID, key: context.key, platform: run.arguments.value("platform") ?? "",
            version: run.arguments.value("version") ?? "", timezoneOffset: context.policy.timezoneOffset)
        credentials.formMD5Key = context.policy.formMD5Key
        RequestSigner.setScope(of: &credentials, from: run)
        let components = try run.arguments.values("component").map(RequestSigner.component)
        guard components.isEmpty || context.scheme == .messageSignatures else {
            throw OperationalError(
                .usage, message: "--component: \(context.scheme.rawValue) has a fixed list")
        }
        if let lifetime = run.arguments.value("presign") {
            try RequestSigner.presign(
                &draft, scheme: context.scheme, credentials: credentials, at: context.at, lifetime: lifetime)
        } else {
            try RequestSigner.sign(
                &draft, scheme: context.scheme, credentials: credentials, at: context.at, nonce: nonce,
                alsoCovering: components)
        }
        if run.arguments.has("json") {
            try run.console.print(RequestSigner.json(draft).prettyText)
        } else {
            try run.console.write(draft.wire)
        }
        return .success
    }
}

extension Command {
    static let verify = Command(
        words: ["verify"], summary: "judge a signed request offline",
        options: OfflineContext.options + OfflineContext.verificationOptions,
        notes: OfflineContext.notes + """


            Prints `accepted`, or the code of the refusal (status 1): what a gateway with this policy says.
            Which hosts it answers for and what it has seen before are not looked for: that takes a
            deployment.
            """
    ) { (run) throws(OperationalError) in
        let context = try OfflineContext(run)
        let explanation = try context.explanation()
        let verdict = context.verdict(explanation)
        try run.print(.object(OfflineContext.json(verdict))) {
            switch verdict {
            case .accepted: "accepted"
            case .refused(let refusal): refusal.code.name
            }
        }
        guard case .refused(let refusal) = verdict else { return .success }
        if !run.arguments.has("json"), !refusal.detail.isEmpty { run.console.note(refusal.detail) }
        return .failed
    }
}

extension Command {
    static let explain = Command(
        words: ["explain"], summary: "show how a request is judged, step by step, and why it is refused",
        options: OfflineContext.options + OfflineContext.verificationOptions + [
            .list(
                "other-secret", placeholder: "S",
                meaning: "a secret that may have been used by mistake (seen in the process list)"),
            .list("other-secret-file", placeholder: "F", meaning: "a file that holds one"),
            .value(
                "signed", placeholder: "FILE",
                meaning: "the string to sign as the client spelled it, to compare with"),
        ],
        notes: OfflineContext.notes + """


            Prints each stage, what the scheme leaves unsigned, and where the signature does not hold, which \
            part differs
            and which usual mistake would explain it; docs/explain.md lists them. The secret and the \
            expected signature are never printed.
            """
    ) { (run) throws(OperationalError) in
        let context = try OfflineContext(run)
        let explanation = try context.explanation()
        let verdict = context.verdict(explanation)
        let comparison = try run.arguments.value("signed").map { (path) throws(OperationalError) in
            ClientStringToSign(try Console.readFile(path, limit: 16 << 20)).compare(
                with: explanation, context: context)
        }
        let json =
            OfflineContext.json(verdict) + [
                ("stages", explanation?.stagesJSON() ?? []), ("cause", explanation?.cause?.json ?? .null),
                ("differs", (comparison?.difference ?? explanation?.cause?.difference)?.json ?? .null),
                ("notes", .strings(explanation?.notes ?? [])),
            ]
        if run.arguments.has("json") {
            try run.console.print(JSONValue.object(json).prettyText)
        } else {
            let text = ExplanationText(style: run.style).text(
                verdict: verdict, explanation: explanation, comparison: comparison)
            try run.console.print(painted: text)
        }
        return verdict == .accepted ? .success : .failed
    }
}
