import CountersignSchemes
import CountersignGate
import CountersignWire

extension Command {
    static let sign = Command(
        words: ["sign"], summary: "sign a request offline",
        options: Desk.options + [
            .value("nonce", "TEXT", "the nonce (default: a random one)"),
            .list("component", "NAME", "cover this too, such as @target-uri (message-signatures)"),
            .value("platform", "NAME", "form-md5: the app's platform, if the request does not name it"),
            .value("version", "V", "form-md5: the app's version, likewise"),
            .value("presign", "SECONDS", "sigv4: sign in the query instead, for so long"),
        ] + Signing.scopeOptions,
        notes: Desk.notes + """


            Prints the signed request. What the scheme leaves unsigned, `explain` shows. Fields that nothing covers
            are not passed on by a gateway, but for Accept, User-Agent and their like.
            """
    ) { (run) throws(Fault) in
        let desk = try Desk(run)
        let nonce = try run.arguments.value("nonce").map(Nonce.read) ?? Nonce.make(for: desk.scheme)
        var draft: Draft
        switch desk.request {
        case .success(let request): draft = Draft(request)
        case .failure(let refusal): throw Fault(.failed, "standard input: not an HTTP request: \(refusal.detail)")
        }
        var credentials = Credentials(
            keyID: desk.keyID, key: desk.key, platform: run.arguments.value("platform") ?? "",
            version: run.arguments.value("version") ?? "", timezoneOffset: desk.policy.timezoneOffset)
        credentials.formMD5Key = desk.policy.formMD5Key
        Signing.setScope(of: &credentials, run)
        let components = try run.arguments.values("component").map(Signing.component)
        guard components.isEmpty || desk.scheme == .messageSignatures else {
            throw Fault(.usage, "--component: \(desk.scheme.rawValue) has a fixed list")
        }
        if let lifetime = run.arguments.value("presign") {
            try Signing.presign(&draft, desk.scheme, credentials, at: desk.at, lifetime: lifetime)
        } else {
            try Signing.sign(
                &draft, desk.scheme, credentials, at: desk.at, nonce: nonce, alsoCovering: components)
        }
        if run.arguments.has("json") {
            try run.console.print(Signing.json(draft).prettyText)
        } else {
            try run.console.write(draft.wire)
        }
        return .success
    }
}
