import Countersign
import CountersignClient
import CountersignWire

/// A call over the SDK: in the name of who is signed in, or of the app version alone.
struct ClientRequest: Sendable {
    let run: Invocation
    let desk: ClientDesk

    func send(_ draft: Draft) throws(Fault) -> ExitStatus {
        let before = try kept()
        let caller = run.arguments.has("as-release") || before.login == nil ? APIRequest.Caller.app : .account
        if before.login == nil, !run.arguments.has("as-release") { try tellNobody(before.ended) }
        let request = APIRequest(draft, caller)
        guard !run.arguments.has("dry-run") else {
            return try Command.show(
                desk.perform { (client) throws(CountersignError) in try await client.draft(of: request) }, run)
        }
        let answer = Answer(run, .beginning)
        let response = try exchange(request, answer)
        try answer.finish()
        UpdateHint.show(response, run)
        if caller == .app { tellClock(before.clockOffset, try kept().clockOffset) }
        tellSigner(of: response)
        return response.status >= 400 ? .failed : .success
    }

    /// Notes that the request is signed by the release alone because the session has ended. Throws, before
    /// anything is sent, if `--require-session` was given.
    private func tellNobody(_ ended: Ending?) throws(Fault) {
        let end = ended.map { "the session has ended: \(ClientDesk.reason(SessionEnd($0)))" }
        let remedy = "`countersign login --profile \(desk.name)` signs in"
        guard !run.arguments.has("require-session") else {
            throw Fault(.failed, "\(end ?? "nobody is signed in"); nothing was sent; \(remedy)")
        }
        if let end { run.console.note("note: \(end); the call is signed as the app version alone; \(remedy)") }
    }

    private func kept() throws(Fault) -> PersistedState {
        try desk.perform { (client) throws(CountersignError) in try await client.kept() }
    }

    private func exchange(_ request: APIRequest, _ shown: Answer) throws(Fault) -> APIResponse {
        let (client, name, origin) = (desk.client, desk.name, desk.origin)
        return try Waiting.run { () async throws(Fault) in
            let answer: APIAnswer
            do throws(CountersignError) {
                answer = try await client.answer(to: request)
            } catch {
                throw ClientDesk.fault(error, name, origin)
            }
            try shown.take(answer.response.status, answer.response.fields)
            var pieces = answer.body.makeAsyncIterator()
            while let piece = try await ClientRequest.next(&pieces, name, origin) { try shown.take(body: piece) }
            return answer.response
        }
    }

    nonisolated(nonsending) private static func next(
        _ pieces: inout APIBytes.Iterator, _ name: String, _ origin: Origin
    ) async throws(Fault) -> [UInt8]? {
        do throws(CountersignError) {
            return try await pieces.next()
        } catch {
            throw ClientDesk.fault(error, name, origin)
        }
    }

    private func tellClock(_ before: Int64, _ offset: Int64) {
        guard offset != before else { return }
        run.console.note(
            "note: this machine's clock is \(offset) s behind the server's; calls are signed with that added")
    }

    private func tellSigner(of response: APIResponse) {
        switch response.signer {
        case .session: run.console.note("the answer's signature holds (the session's key)")
        case .authority: run.console.note("the answer's signature holds (the server's key)")
        case .nobody where response.value(of: "signature-input") == nil: break
        case .nobody where desk.profile.authorityKey == nil:
            run.console.note("note: the answer is signed, and the profile has no --authority-key to verify it with")
        case .nobody: run.console.note("note: the answer is too long for its signature to be looked at")
        }
    }
}

extension APIRequest {
    fileprivate init(_ draft: Draft, _ caller: Caller) {
        self.init(
            APIMethod(draft.method), String(decoding: draft.target, as: UTF8.self),
            fields: draft.fields.map { HeaderField($0.name, bytes: $0.value) },
            body: draft.body.isEmpty ? .none : .bytes(draft.body))
        self.caller = caller
    }
}
