import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire

extension ClientCore {
    /// How a call is made, beside what it asks for.
    struct Manner: Sendable {
        var reading: CallTransport.Reading
        /// Where somebody is present.
        var signer: PassingSigner?
        var progress: @Sendable (TransferProgress) -> Void = { _ in }
        var refusals = Refusals.thrown
        var occasion = Occasion.single
        var owner = CallOwner()

        /// Whether it is asked once, or again and again.
        enum Occasion: Sendable { case single, round }

        /// What becomes of an answer in which the authority refuses.
        enum Refusals: Sendable { case thrown, answered }
    }

    /// One wish of the app's: through the interceptors to the server, as often as it takes, and back.
    func send(_ request: APIRequest, _ manner: Manner) async throws(CountersignError) -> APIAnswer {
        let request = named(request)
        let call = beginCall(request.method, request.path)
        let start = options.clock.monotonic()
        let trace = Locked(CallTransport.Trace())
        events.tell(.began(call))
        do throws(CountersignError) {
            // While the vault is closed nobody is known; an interceptor may answer all the same.
            try? await settle(manner.owner, for: request.caller)
            let server: @Sendable (APIRequest) async throws(CountersignError) -> APIAnswer = {
                request throws(CountersignError) in
                try await self.askWithRetries(request, call, trace, manner)
            }
            let answer = try await InterceptorChain(options.interceptors[...], server)(request)
            let (response, after) = (answer.response, options.clock.elapsed(since: start))
            events.tell(.answered(call, status: response.status, signer: response.signer, after: after))
            return answer
        } catch {
            // Whatever a task that was cancelled stumbled over, it is the cancelling that ended it.
            let error = Task.isCancelled ? CountersignError.cancelled : error
            events.tell(.failed(call, CountersignEvent.Failure(error), after: options.clock.elapsed(since: start)))
            throw error
        }
    }

    /// The request with what tells its copies from another wish. Source: docs/protocol.md, "Doing once".
    func named(_ request: APIRequest) -> APIRequest {
        guard request.method.isUnsafe, request.idempotencyKey == nil,
            request.value(of: "idempotency-key") == nil
        else { return request }
        var request = request
        request.idempotencyKey = Base64.encode(surroundings.random.bytes(16).span, .url)
        return request
    }

    func ask(
        _ request: APIRequest, _ call: CountersignEvent.Call, _ trace: Locked<CallTransport.Trace>, _ manner: Manner
    ) async throws(CountersignError) -> APIAnswer {
        try await open()
        try await admit(request.caller, manner.owner, manner.occasion)
        try await settle(manner.owner, for: request.caller)
        let request = named(request)
        let body = try await PreparedBody(request.body)
        let removals = cookies.removals
        let draft = try draft(request, body)
        let transport = CallTransport(self, call, trace, body.body, manner.reading, manner.progress)
        var way = surroundings
        way.transport = transport
        way.signer = manner.signer?.present
        let answered: SignedCalls.Answered
        do throws(ClientProblem) {
            switch request.caller {
            case .account:
                answered = try await SignedCalls(installation, way, refreshingOver: surroundings.transport).send(
                    draft, as: manner.owner.signing, body: body.use)
            case .app: answered = try await ReleaseCalls(installation, way).send(draft, body: body.use)
            }
        } catch {
            throw note(CountersignError(error))
        }
        noteClock()
        return try answer(answered, draft.target, transport, manner.refusals, cookiesAt: removals)
    }

    /// The request as the state machine takes it, to be signed.
    func draft(_ request: APIRequest, _ body: PreparedBody) throws(CountersignError) -> Draft {
        var draft = Draft(
            method: request.method.description, target: Array(try base.target(request.path).utf8),
            authority: base.origin.authority, transport: base.origin.security == .tls ? .tls : .plain)
        draft.fields = request.fields.map(Draft.Field.init)
        if request.value(of: "user-agent") == nil { draft.fields.append(Draft.Field("User-Agent", options.userAgent)) }
        if request.value(of: "cookie") == nil, let value = cookieField(for: draft) { draft.set("Cookie", value) }
        if let key = request.idempotencyKey { draft.set("Idempotency-Key", key) }
        if case .bytes(let bytes) = body.body { draft.body = bytes }
        if let digest = body.digest { draft.streamed = Draft.StreamedBody(length: body.length, digest: digest) }
        return draft
    }

    /// What the authority refuses is thrown; what a backend says is an answer, whatever its status.
    private func answer(
        _ answered: SignedCalls.Answered, _ target: [UInt8], _ transport: CallTransport,
        _ refusals: Manner.Refusals, cookiesAt removals: Int
    ) throws(CountersignError) -> APIAnswer {
        if let notice = answered.notice, notice.isGenuine {
            let error = note(CountersignError(notice))
            if refusals == .thrown { throw error }
        }
        if release.authorityKey == nil, refusals == .thrown, let notice = answered.notice, !notice.isGenuine,
            case .unknownKey? = answered.doubt
        {
            throw .authorityKeyMissing(CountersignError.Refusal(notice))
        }
        let message = answered.response.message
        var (fields, rest) = transport.takeAnswer()
        hints.note(fields)
        takeCookies(fields, target, unlessRemovedSince: removals)
        if let check = answered.toBeChecked { rest = rest?.checked(check.expectation) }
        let length: TransferProgress.Total = rest == nil ? .bytes(Int64(message.body.count)) : .told(by: fields)
        let response = APIResponse(
            status: answered.response.status, fields: fields, length: length,
            signer: APIResponse.Signer(answered.signer ?? answered.toBeChecked?.signer))
        return APIAnswer(response, rest ?? APIBytes(whole: message.body))
    }

    /// The authority's word about the version is for all requests.
    func note(_ error: CountersignError) -> CountersignError {
        if case .updateRequired(let url) = error { standings.requireUpdate(url) }
        return error
    }
}

extension APIResponse.Signer {
    fileprivate init(_ keyID: KeyID?) {
        guard let keyID else {
            self = .nobody
            return
        }
        self = keyID == KeyID(MessageSignatures.authorityKeyID) ? .authority : .session
    }
}

extension TransferProgress.Total {
    /// By `Content-Length`, where there is one.
    static func told(by fields: [HeaderField]) -> TransferProgress.Total {
        fields.text(of: "content-length").flatMap(Int64.init).map { .bytes($0) } ?? .unknown
    }
}
