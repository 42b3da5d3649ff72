import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignWire

extension Command {
    static let request = Command(
        words: ["request"], summary: "make a signed call",
        positionals: [Positional(name: "URL|PATH")],
        options: [
            .value("profile", "P", "the server and key to use (COUNTERSIGN_PROFILE, else default)"),
            .value("request", "METHOD", "the method (default: GET; POST with -d)", letter: "X"),
            .list("data", "BODY|@FILE", "the body; @FILE sends a file as it is, @- standard input", letter: "d"),
            .list("header", "N: V", "a field more", letter: "H"),
            .flag("include", "print the answer's head as well", letter: "i"),
            .value("scheme", "NAME", "sign with this scheme, not the profile's"), .formMD5Key,
            .flag("as-release", "speak for the app version alone, though somebody is signed in"),
            .flag("require-session", "fail, and send nothing, where nobody is signed in"),
            .flag("dry-run", "print what would be sent, and send nothing"), .json,
        ] + Signing.scopeOptions,
        notes: """
            A PATH goes to the profile's server; a URL must be of that server, because the key is for no other. Several -d
            are joined by `&`. The answer's body goes to standard output as it came; status 1 where the server refused.

            Where somebody is signed in (`countersign login`), the call is theirs: a token that ran out is renewed and the call sent
            again, once. Under message-signatures, what changes something bears an Idempotency-Key, so that a second copy is not done
            twice. Where the session has ended, the call is the app version's alone, and a note says so;
            --require-session sends nothing then. Where this machine's clock is refused, and the server's word is
            signed, it is corrected, and what may be sent again is.
            """
    ) { (run) throws(Fault) in
        let name = ClientDesk.profileName(run)
        let folder = try ProfileFolder(name, run.environment)
        let (profile, key) = try folder.read()
        let (origin, _) = try Origin.split(profile.url)
        var draft = try draft(run, to: origin)
        let scheme = try run.schemeName(default: profile.scheme)
        if run.arguments.has("require-session") {
            guard !run.arguments.has("as-release"), scheme == .messageSignatures, profile.scheme == scheme else {
                throw Fault(
                    .usage,
                    "--require-session: sessions sign with message-signatures, and --as-release is a call without one")
            }
        }
        if scheme == .messageSignatures, profile.scheme == scheme {
            let desk = try ClientDesk(run, name: name, folder: folder, profile, key)
            return try ClientRequest(run: run, desk: desk).send(draft)
        }
        var credentials = Credentials(
            keyID: profile.keyID, key: key, platform: profile.platform, version: profile.version,
            timezoneOffset: profile.timezoneOffset)
        credentials.formMD5Key = try run.formMD5Key() ?? profile.formMD5Key
        Signing.setScope(of: &credentials, run)
        try Signing.sign(&draft, scheme, credentials, at: run.now, nonce: Nonce.make(for: scheme))
        if run.arguments.has("dry-run") { return try show(draft, run) }
        let line = try ServerLine(profile)
        let answer = Answer(run, scheme == .messageSignatures ? .toVerify : .beginning)
        let signed = draft
        try Waiting.run { () async throws(Fault) in try await line.exchange(signed, answer) }
        try answer.finish()
        if scheme == .messageSignatures, try !isOurs(answer.response, to: draft, profile, run) {
            return .failed
        }
        return answer.status >= 400 || (scheme == .formMD5 && answer.isLegacyError) ? .failed : .success
    }

    static func show(_ draft: Draft, _ run: Invocation) throws(Fault) -> ExitStatus {
        if run.arguments.has("json") {
            try run.console.print(Signing.json(draft).prettyText)
        } else {
            try run.console.write(draft.wire)
        }
        return .success
    }

    /// False where the answer bears a signature that is wrong. What cannot be judged is said, and let by.
    private static func isOurs(
        _ response: Response?, to draft: Draft, _ profile: Profile, _ run: Invocation
    ) throws(Fault) -> Bool {
        guard let response else {
            run.console.note("note: the answer is too long for its signature to be looked at")
            return true
        }
        guard let authorityID = KeyID(MessageSignatures.authorityKeyID) else { return true }
        // The release's own key is not among them: an answer under it could be from anybody who has the app.
        var keys: [KeyID: SigningKey] = [:]
        do {
            if let bytes = profile.authorityKey { keys[authorityID] = SigningKey(try PublicKey(ed25519: bytes)) }
            let finding = try VerifyAnswer(keys)(response, to: draft.request())
            if case .holds(let keyID) = finding { run.console.note("the answer's signature holds (key \(keyID))") }
            return true
        } catch let refusal as Refusal where refusal.code == .unknownKey && profile.authorityKey == nil {
            run.console.note("note: the answer is signed, and the profile has no --authority-key to verify it with")
            return true
        } catch {
            let reason = (error as? Refusal)?.detail ?? (error as? KeyProblem)?.expected ?? "\(error)"
            run.console.note("the answer is not to be trusted: \(reason)")
            return false
        }
    }

    private static func draft(_ run: Invocation, to origin: Origin) throws(Fault) -> Draft {
        let place = try run.required("URL|PATH")
        let target: [UInt8]
        if place.hasPrefix("/") {
            target = try Origin.checkedTarget(place)
        } else {
            let parts = try Origin.split(place)
            guard parts.origin == origin else {
                throw Fault(.usage, "\(parts.origin): the profile's key is for \(origin) only")
            }
            target = parts.target
        }
        let data = run.arguments.values("data")
        let method = run.arguments.value("request") ?? (data.isEmpty ? "GET" : "POST")
        guard (1...32).contains(method.utf8.count), method.utf8.allSatisfy(Draft.Field.isToken) else {
            throw Fault(.usage, "-X `\(method)`: expected a method such as GET or POST")
        }
        var draft = Draft(method: method, target: target, authority: origin.authority, transport: origin.transport)
        draft.fields = [Draft.Field("User-Agent", "countersign/\(Product.version)"), Draft.Field("Accept", "*/*")]
        for (index, item) in data.enumerated() {
            if index > 0 { draft.body.append(UInt8(ascii: "&")) }
            draft.body += try bytes(of: item, run)
        }
        if !data.isEmpty { draft.set("Content-Type", "application/x-www-form-urlencoded") }
        try addFields(to: &draft, run)
        if let flaw = OutgoingRequest(draft, to: origin).flaw {
            throw Fault(.usage, "the request cannot be sent: \(flaw)")
        }
        return draft
    }

    private static func addFields(to draft: inout Draft, _ run: Invocation) throws(Fault) {
        var given: [Draft.Field] = []
        for text in run.arguments.values("header") { given.append(try Draft.Field.read(text)) }
        // As with curl, one that is given takes the place of the default; one given twice is sent twice.
        draft.fields.removeAll { own in given.contains { $0.name.lowercased() == own.name.lowercased() } }
        draft.fields += given
    }

    private static func bytes(of data: String, _ run: Invocation) throws(Fault) -> [UInt8] {
        if data == "@-" { return try run.console.read(limit: 1 << 30) }
        if data.hasPrefix("@") { return try Console.readFile(String(data.dropFirst()), limit: 1 << 30) }
        return Array(data.utf8)
    }
}
