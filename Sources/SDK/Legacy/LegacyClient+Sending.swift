import CountersignClient
import CountersignTransport
import CountersignTrust
import CountersignWire

/// In whose name a legacy client's call goes out, through all its copies. Safe to share among calls that are
/// one wish.
final class LegacyCallOwner: Sendable {
    private let settled = Locked(LegacyCalls.Owner.whoeverIsSignedIn)

    var owner: LegacyCalls.Owner { settled.with { $0 } }

    /// The first whom this names is it.
    func settle(_ owner: LegacyCalls.Owner?) {
        guard let owner else { return }
        settled.with { if $0 == .whoeverIsSignedIn { $0 = owner } }
    }
}

extension LegacyClient {
    /// How a call is made, beside what it asks for.
    struct Manner: Sendable {
        var reading: CallTransport.Reading
        var progress: @Sendable (TransferProgress) -> Void = { _ in }
        var owner = LegacyCallOwner()
    }

    /// One wish of the app's: through the interceptors to the server, as often as it takes, and back.
    func send(_ request: APIRequest, _ manner: Manner) async throws(CountersignError) -> APIAnswer {
        let call = names.next(request.method, request.path)
        let start = options.clock.monotonic()
        let trace = Locked(CallTransport.Trace())
        report.events.tell(.began(call))
        do throws(CountersignError) {
            // While nobody is known, an interceptor may answer all the same.
            await settle(manner.owner, for: request.caller)
            let server: @Sendable (APIRequest) async throws(CountersignError) -> APIAnswer = {
                request throws(CountersignError) in
                try await self.ask(request, call, trace, manner)
            }
            let answer = try await InterceptorChain(options.interceptors[...], server)(request)
            let after = options.clock.elapsed(since: start)
            report.events.tell(
                .answered(call, status: answer.response.status, signer: answer.response.signer, after: after))
            return answer
        } catch {
            let error = Task.isCancelled ? CountersignError.cancelled : error
            let after = options.clock.elapsed(since: start)
            report.events.tell(.failed(call, CountersignEvent.Failure(error), after: after))
            throw error
        }
    }

    private func ask(
        _ request: APIRequest, _ call: CountersignEvent.Call, _ trace: Locked<CallTransport.Trace>,
        _ manner: Manner
    ) async throws(CountersignError) -> APIAnswer {
        try await admit(request.caller)
        await settle(manner.owner, for: request.caller)
        let (draft, body) = try await draft(of: request)
        let transport = CallTransport(
            self, call, trace, streamed: body.streamed, manner.reading, manner.progress)
        let response: Response
        do throws(LegacyProblem) {
            if request.caller == .account { try await open() }
            response = try await calls.send(
                draft, as: request.legacyCaller, of: manner.owner.owner, over: transport, body: body.use)
        } catch {
            throw CountersignError(error)
        }
        let (fields, rest) = transport.takeAnswer()
        hints.note(fields)
        let whole = response.message.body
        let length: TransferProgress.Total = rest == nil ? .bytes(Int64(whole.count)) : .told(by: fields)
        return APIAnswer(
            APIResponse(status: response.status, fields: fields, length: length),
            rest ?? APIBytes(whole: whole))
    }

    /// The request as the scheme takes it, to be signed.
    func draft(of request: APIRequest) async throws(CountersignError) -> (draft: Draft, body: LegacyBody) {
        var draft = Draft(
            method: request.method.description, target: Array(try base.target(request.path).utf8),
            authority: base.origin.authority, transport: base.origin.security == .tls ? .tls : .plain)
        draft.fields = request.fields.map(Draft.Field.init)
        if request.value(of: "user-agent") == nil { draft.set("User-Agent", options.userAgent) }
        let need = account.signing.need(ofFormBody: draft.request().hasFormType)
        let body = try await LegacyBody(request.body, need, most: options.largestAnswer)
        (draft.body, draft.streamed) = (body.bytes, body.digest)
        return (draft, body)
    }

    /// Settles whose a call is, where somebody is known to be signed in.
    func settle(_ owner: LegacyCallOwner, for caller: APIRequest.Caller) async {
        guard caller == .account, owner.owner == .whoeverIsSignedIn, (try? await open()) != nil else {
            return
        }
        owner.settle(await calls.owner())
    }
}

extension APIRequest {
    var legacyCaller: LegacyCalls.Caller {
        switch caller {
        case .account: .user
        case .app: .app
        }
    }
}
