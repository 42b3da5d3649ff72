import Countersign
import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignThreads
import CountersignTransport
import CountersignWire

extension Command {
    static let request = Command(
        words: ["request"], summary: "make a signed call",
        positionals: [Positional(name: "URL|PATH")],
        options: [
            .value(
                "profile", placeholder: "P",
                meaning: "the server and key to use (COUNTERSIGN_PROFILE, else default)"),
            .value(
                "request", placeholder: "METHOD", meaning: "the method (default: GET; POST with -d)",
                letter: "X"),
            .list(
                "data", placeholder: "BODY|@FILE",
                meaning: "the body; @FILE sends a file as it is, @- standard input", letter: "d"),
            .list("header", placeholder: "N: V", meaning: "a field more", letter: "H"),
            .flag("include", meaning: "print the answer's head as well", letter: "i"),
            .scheme(meaning: "sign with this scheme, not the profile's"),
            .formMD5Key,
            .flag("as-release", meaning: "sign as the app version alone, even if an account is signed in"),
            .flag("require-session", meaning: "fail, and send nothing, if no account is signed in"),
            .flag("dry-run", meaning: "print what would be sent, and send nothing"), .json,
        ] + RequestSigner.scopeOptions,
        notes: """
            A PATH goes to the profile's server; a URL must be of that server, because the key is for no \
            other. Several -d
            are joined by `&`. The answer's body goes to standard output as it came; status 1 where the \
            server refused.

            If an account is signed in (`countersign login`), the call belongs to it: the command renews an
            expired token and sends the call once more. Under message-signatures, a call that changes
            something has an Idempotency-Key, so that a second copy is not executed. If the session has
            ended, the call is signed by the app version alone, and a note says so; --require-session sends
            nothing then. If the server refuses the time of this machine's clock in a signed response, the
            command corrects the time and repeats the call if that is safe.
            """
    ) { (run) throws(OperationalError) in
        let name = ProfileSession.profileName(run)
        let folder = try ProfileFolder(name, environment: run.environment)
        let (profile, key) = try folder.read()
        let (origin, _) = try Origin.split(profile.url)
        var draft = try draft(run, to: origin)
        let scheme = try run.schemeName(default: profile.scheme)
        if run.arguments.has("require-session") {
            guard !run.arguments.has("as-release"), scheme == .messageSignatures, profile.scheme == scheme
            else {
                throw OperationalError(
                    .usage,
                    message:
                        "--require-session: sessions sign with message-signatures, and --as-release is a "
                        + "call without one"
                )
            }
        }
        if scheme == .messageSignatures, profile.scheme == scheme {
            let session = try ProfileSession(run, name: name, folder: folder, profile: profile, key: key)
            return try ClientRequest(run: run, session: session).send(draft)
        }
        var credentials = Credentials(
            keyID: profile.keyID, key: key, platform: profile.platform, version: profile.version,
            timezoneOffset: profile.timezoneOffset)
        credentials.formMD5Key = try run.formMD5Key() ?? profile.formMD5Key
        RequestSigner.setScope(of: &credentials, from: run)
        try RequestSigner.sign(
            &draft, scheme: scheme, credentials: credentials, at: run.now, nonce: Nonce.make(for: scheme))
        if run.arguments.has("dry-run") { return try show(draft, run: run) }
        let line = try ProfileConnection(profile)
        let answer = ResponseOutput(run, keeping: scheme == .messageSignatures ? .toVerify : .beginning)
        let signed = draft
        try BlockingTask.run { () async throws(OperationalError) in
            try await line.exchange(signed, into: answer)
        }
        try answer.finish()
        if scheme == .messageSignatures,
            try !isAuthentic(answer.response, to: draft, profile: profile, run: run)
        {
            return .failed
        }
        return answer.status >= 400 || (scheme == .formMD5 && answer.isLegacyError) ? .failed : .success
    }

    static func show(_ draft: Draft, run: Invocation) throws(OperationalError) -> ExitStatus {
        if run.arguments.has("json") {
            try run.console.print(RequestSigner.json(draft).prettyText)
        } else {
            try run.console.write(draft.wire)
        }
        return .success
    }

    /// False where the answer bears a signature that is wrong. What cannot be judged is said, and let by.
    private static func isAuthentic(
        _ response: Response?, to draft: Draft, profile: Profile, run: Invocation
    ) throws(OperationalError) -> Bool {
        guard let response else {
            run.console.note("note: the answer is too long for its signature to be looked at")
            return true
        }
        do {
            // The release's own key is not among them: every copy of the app could make a response under it.
            let verify = ResponseVerifier([:], authority: try profile.authorityKeys())
            switch try verify(response, to: draft.request()) {
            case .holds(let keyID): run.console.note("the answer's signature holds (key \(keyID))")
            case .holdsUnderNext(let keyID):
                run.console.note("the answer's signature holds (key \(keyID), the next one)")
            case .unsigned: break
            }
            return true
        } catch let refusal as Refusal where refusal.code == .unknownKey && profile.authorityKey == nil {
            run.console.note(
                "note: the response is signed, but the profile has no --authority-key to verify it")
            return true
        } catch {
            let reason = (error as? Refusal)?.detail ?? "\(error)"
            run.console.note("the answer is not to be trusted: \(reason)")
            return false
        }
    }

    private static func draft(_ run: Invocation, to origin: Origin) throws(OperationalError) -> Draft {
        let place = try run.required("URL|PATH")
        let target: [UInt8]
        if place.hasPrefix("/") {
            target = try Origin.checkedTarget(place)
        } else {
            let parts = try Origin.split(place)
            guard parts.origin == origin else {
                throw OperationalError(
                    .usage, message: "\(parts.origin): the profile's key is for \(origin) only")
            }
            target = parts.target
        }
        let data = run.arguments.values("data")
        let method = run.arguments.value("request") ?? (data.isEmpty ? "GET" : "POST")
        guard (1...32).contains(method.utf8.count), method.utf8.allSatisfy(Draft.Field.isToken) else {
            throw OperationalError(.usage, message: "-X `\(method)`: expected a method such as GET or POST")
        }
        var draft = Draft(
            method: method, target: target, authority: origin.authority, transport: origin.transport)
        draft.fields = [
            Draft.Field(name: "User-Agent", value: "countersign/\(Product.version)"),
            Draft.Field(name: "Accept", value: "*/*"),
        ]
        for (index, item) in data.enumerated() {
            if index > 0 { draft.body.append(UInt8(ascii: "&")) }
            draft.body += try bytes(of: item, run: run)
        }
        if !data.isEmpty { draft.setField("Content-Type", to: "application/x-www-form-urlencoded") }
        try addFields(to: &draft, run: run)
        if let flaw = OutgoingRequest(draft, to: origin).flaw {
            throw OperationalError(.usage, message: "the request cannot be sent: \(flaw)")
        }
        return draft
    }

    private static func addFields(to draft: inout Draft, run: Invocation) throws(OperationalError) {
        var given: [Draft.Field] = []
        for text in run.arguments.values("header") { given.append(try Draft.Field.read(text)) }
        // As with curl, one that is given takes the place of the default; one given twice is sent twice.
        draft.fields.removeAll { own in given.contains { $0.name.lowercased() == own.name.lowercased() } }
        draft.fields += given
    }

    private static func bytes(of data: String, run: Invocation) throws(OperationalError) -> [UInt8] {
        if data == "@-" { return try run.console.read(limit: 1 << 30) }
        if data.hasPrefix("@") { return try Console.readFile(String(data.dropFirst()), limit: 1 << 30) }
        return Array(data.utf8)
    }
}

/// A call over the SDK: as the signed-in account, or as the app version alone.
struct ClientRequest: Sendable {
    let run: Invocation
    let session: ProfileSession

    func send(_ draft: Draft) throws(OperationalError) -> ExitStatus {
        let before = try kept()
        let caller = run.arguments.has("as-release") || before.login == nil ? APIRequest.Caller.app : .account
        if before.login == nil, !run.arguments.has("as-release") { try noteSessionEnd(before.ended) }
        let request = APIRequest(draft, caller: caller)
        guard !run.arguments.has("dry-run") else {
            return try Command.show(
                session.perform { (client) throws(CountersignError) in try await client.draft(of: request) },
                run: run)
        }
        let answer = ResponseOutput(run, keeping: .beginning)
        let response = try exchange(request, into: answer)
        try answer.finish()
        UpdateHint.show(response, run: run)
        if caller == .app { noteClockChange(from: before.clockOffset, to: try kept().clockOffset) }
        noteSigner(of: response)
        return response.status >= 400 ? .failed : .success
    }

    /// Notes that the request is signed by the release alone because the session has ended. Throws, before
    /// anything is sent, if `--require-session` was given.
    private func noteSessionEnd(_ ended: SessionEndRecord?) throws(OperationalError) {
        let end = ended.map { "the session has ended: \(ProfileSession.reason(SessionEnd($0)))" }
        let remedy = "`countersign login --profile \(session.name)` signs in"
        guard !run.arguments.has("require-session") else {
            throw OperationalError(
                .failed, message: "\(end ?? "no account is signed in"); nothing was sent; \(remedy)")
        }
        if let end {
            run.console.note("note: \(end); the call is signed as the app version alone; \(remedy)")
        }
    }

    private func kept() throws(OperationalError) -> PersistedState {
        try session.state()
    }

    private func exchange(_ request: APIRequest, into shown: ResponseOutput) throws(OperationalError)
        -> APIResponse
    {
        let (client, name, origin) = (session.client, session.name, session.origin)
        return try BlockingTask.run { () async throws(OperationalError) in
            let answer: APIAnswer
            do throws(CountersignError) {
                answer = try await client.answer(to: request)
            } catch {
                throw ProfileSession.operationalError(for: error, profile: name, origin: origin)
            }
            try shown.write(status: answer.response.status, fields: answer.response.fields)
            var pieces = answer.body.makeAsyncIterator()
            while let piece = try await ClientRequest.next(&pieces, profile: name, origin: origin) {
                try shown.write(body: piece)
            }
            return answer.response
        }
    }

    private static func next(
        _ pieces: inout APIBytes.Iterator, profile name: String, origin: Origin
    ) async throws(OperationalError) -> [UInt8]? {
        do {
            return try await pieces.next()
        } catch {
            throw ProfileSession.operationalError(for: error, profile: name, origin: origin)
        }
    }

    private func noteClockChange(from before: Int64, to offset: Int64) {
        guard offset != before else { return }
        run.console.note(
            "note: this machine's clock is \(offset) s behind the server's; calls are signed with that added")
    }

    private func noteSigner(of response: APIResponse) {
        switch response.signer {
        case .session: run.console.note("the answer's signature holds (the session's key)")
        case .authority: run.console.note("the answer's signature holds (the server's key)")
        case .nobody where response.value(of: "signature-input") == nil: break
        case .nobody where session.profile.authorityKey == nil:
            run.console.note(
                "note: the response is signed, but the profile has no --authority-key to verify it")
        case .nobody: run.console.note("note: the answer is too long for its signature to be looked at")
        }
    }
}

extension APIRequest {
    fileprivate init(_ draft: Draft, caller: Caller) {
        self.init(
            APIMethod(draft.method), String(decoding: draft.target, as: UTF8.self),
            fields: draft.fields.map { HeaderField($0.name, bytes: $0.value) },
            body: draft.body.isEmpty ? .none : .bytes(draft.body))
        self.caller = caller
    }
}
