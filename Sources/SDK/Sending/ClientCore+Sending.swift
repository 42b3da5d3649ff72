import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire

extension ClientCore {
    /// How a call is made, apart from the request.
    struct CallOptions: Sendable {
        var reading: CallTransport.Reading
        /// Set if the user is present.
        var signer: PresenceSigner?
        var progress: @Sendable (TransferProgress) -> Void = { _ in }
        var refusals = Refusals.thrown
        var occasion = Occasion.single
        var owner = CallOwner()

        /// Whether it is a single call or a round of polling.
        enum Occasion: Sendable { case single, round }

        /// How the caller gets a refusal of the authority.
        enum Refusals: Sendable { case thrown, answered }
    }

    /// Sends one call of the app through the interceptors to the server, with as many copies as it needs.
    func send(_ request: APIRequest, options callOptions: CallOptions) async throws(CountersignError)
        -> APIAnswer
    {
        let request = withIdempotencyKey(request)
        let call = beginCall(request.method, path: request.path)
        let start = options.clock.monotonic()
        let trace = Locked(CallTransport.Trace())
        events.tell(.began(call))
        do throws(CountersignError) {
            // While the vault is locked no account is known; an interceptor may answer all the same.
            try? await resolve(callOptions.owner, for: request.caller)
            let server: @Sendable (APIRequest) async throws(CountersignError) -> APIAnswer = {
                request throws(CountersignError) in
                try await self.sendWithRetries(request, call: call, trace: trace, options: callOptions)
            }
            let answer = try await InterceptorChain(options.interceptors[...], server: server)(request)
            let (response, after) = (answer.response, options.clock.elapsed(since: start))
            events.tell(.answered(call, status: response.status, signer: response.signer, after: after))
            return answer
        } catch {
            // Whatever error a cancelled task met, cancellation ended the call.
            let error = Task.isCancelled ? CountersignError.cancelled : error
            events.tell(
                .failed(call, CountersignEvent.Failure(error), after: options.clock.elapsed(since: start)))
            throw error
        }
    }

    /// Adds the key by which the server recognizes copies of the request. Source: docs/protocol.md,
    /// "Idempotent requests".
    private func withIdempotencyKey(_ request: APIRequest) -> APIRequest {
        let method = request.method.description
        guard let key = environment.idempotencyKey(for: method, isKeyed: request.isKeyed) else {
            return request
        }
        var request = request
        request.idempotencyKey = key
        return request
    }

    func sendOnce(
        _ request: APIRequest, call: CountersignEvent.Call, trace: Locked<CallTransport.Trace>,
        options callOptions: CallOptions
    ) async throws(CountersignError) -> APIAnswer {
        try await open()
        try await admit(request.caller, owner: callOptions.owner, occasion: callOptions.occasion)
        try await resolve(callOptions.owner, for: request.caller)
        let body = try await PreparedBody(request.body)
        let removals = jar.store.removals
        let draft = try draft(request, body: body)
        let transport = CallTransport(
            self, call: call, trace: trace, body: body.body, reading: callOptions.reading,
            progress: callOptions.progress)
        var callEnvironment = environment
        callEnvironment.transport = transport
        callEnvironment.signer = callOptions.signer?.present
        let result: VerifiedResponse
        do throws(ClientOperationError) {
            switch request.caller {
            case .account:
                result = try await SignedCalls(
                    installation, environment: callEnvironment, refreshingOver: environment.transport
                )
                .send(
                    draft, as: callOptions.owner.signing, body: body.use)
            case .app:
                result = try await ReleaseCalls(
                    installation, environment: callEnvironment, loggingOutOver: environment.transport
                )
                .send(draft, body: body.use)
            }
        } catch {
            throw note(CountersignError(error))
        }
        noteClock()
        return try answer(
            from: result, target: draft.target, transport: transport, refusals: callOptions.refusals,
            cookiesAt: removals)
    }

    /// The draft of the request, to be signed. An interceptor may have removed the idempotency key.
    func draft(_ request: APIRequest, body: PreparedBody) throws(CountersignError) -> Draft {
        let request = withIdempotencyKey(request)
        var draft = Draft(
            method: request.method.description, target: Array(try base.target(request.path).utf8),
            authority: base.origin.authority, transport: base.origin.security == .tls ? .tls : .plain)
        draft.fields = request.fields.map(Draft.Field.init)
        if request.value(of: "user-agent") == nil {
            draft.fields.append(Draft.Field(name: "User-Agent", value: options.userAgent))
        }
        if request.value(of: "cookie") == nil, let value = jar.field(for: draft) {
            draft.setField("Cookie", to: value)
        }
        if let key = request.idempotencyKey { draft.setField("Idempotency-Key", to: key) }
        if case .bytes(let bytes) = body.body { draft.body = bytes }
        if let digest = body.digest {
            draft.streamed = Draft.StreamedBody(length: body.length, digest: digest)
        }
        return draft
    }

    /// Throws a refusal of the authority; a backend's response is returned, whatever its status.
    private func answer(
        from result: VerifiedResponse, target: [UInt8], transport: CallTransport,
        refusals: CallOptions.Refusals, cookiesAt removals: Int
    ) throws(CountersignError) -> APIAnswer {
        if let notice = result.notice, notice.isGenuine {
            let error = note(CountersignError(notice))
            if refusals == .thrown { throw error }
        }
        if release.authorityKey == nil, refusals == .thrown, let notice = result.notice, !notice.isGenuine,
            case .unknownKey? = result.unsignedReason
        {
            throw .authorityKeyMissing(CountersignError.Refusal(notice))
        }
        let message = result.response.message
        var (fields, rest) = transport.takeAnswer()
        hints.note(fields)
        jar.take(fields, target: target, unlessRemovedSince: removals)
        if let check = result.bodyCheck { rest = rest?.checked(check.expectation) }
        let length: TransferProgress.Total =
            rest == nil ? .bytes(Int64(message.body.count)) : .told(by: fields)
        let response = APIResponse(
            status: result.response.status, fields: fields, length: length,
            signer: APIResponse.Signer(result.headSigner))
        return APIAnswer(response, rest ?? APIBytes(whole: message.body))
    }

    /// A statement of the authority about the version concerns all requests.
    func note(_ error: CountersignError) -> CountersignError {
        if case .updateRequired(let url) = error { stateMachine.requireUpdate(url) }
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
    /// From `Content-Length`, if there is one.
    static func told(by fields: [HeaderField]) -> TransferProgress.Total {
        fields.text(of: "content-length").flatMap(Int64.init).map { .bytes($0) } ?? .unknown
    }
}

/// The account of a call: the account that is known to be signed in when the app makes the call, the same for
/// all copies, however long the client hashes a body, waits for an interceptor, or holds traffic back. Calls
/// for the same purpose may share one.
final class CallOwner: Sendable {
    private let resolved = Locked<AccountName?>(nil)

    /// Nil while no account is known.
    var account: AccountName? { resolved.with { $0 } }

    /// Sets the account if there is none yet.
    func resolve(_ account: AccountName?) { resolved.with { $0 = $0 ?? account } }

    /// The owner as the client module takes it.
    var signing: SignedCalls.Owner { account.map { .account($0) } ?? .currentAccount }
}

extension ClientCore {
    /// Sets the account of a call if one is known to be signed in.
    func resolve(_ owner: CallOwner, for caller: APIRequest.Caller) async throws(CountersignError) {
        guard caller == .account, owner.account == nil else { return }
        try await open()
        do throws(ClientOperationError) {
            owner.resolve(try keeper.state().login?.account)
        } catch {
            throw CountersignError(error)
        }
    }
}
