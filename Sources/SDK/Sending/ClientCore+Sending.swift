import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire

extension ClientCore: CallEngine {
    var recognition: CallRepetition.Recognition { .byKey }

    /// Source: docs/protocol.md, "Idempotent requests".
    func identified(_ request: APIRequest) -> APIRequest {
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
        let removals = context.jar.store.removals
        let draft = try draft(of: request, body: body)
        let transport = CallTransport(
            context, call: call, trace: trace, body: body, dialect: SignedDialect(), options: callOptions)
        let result = try await run(signer: callOptions.signer) {
            (installation, own) async throws(ClientOperationError) in
            var calls = own
            calls.transport = transport
            switch request.caller {
            case .account:
                return try await SignedCalls(
                    installation, environment: calls, refreshingOver: own.transport
                ).send(draft, as: callOptions.owner.signing, body: body.use)
            case .app:
                return try await ReleaseCalls(
                    installation, environment: calls, loggingOutOver: own.transport
                ).send(draft, body: body.use)
            }
        }
        try check(result, refusals: callOptions.refusals)
        return context.answer(
            result.response, to: draft, over: transport, cookiesAt: removals,
            signer: APIResponse.Signer(result.headSigner), expecting: result.bodyCheck?.expectation)
    }

    /// The draft of the request, to be signed. An interceptor may have removed the idempotency key.
    func draft(of request: APIRequest, body: PreparedBody) throws(CountersignError) -> Draft {
        let request = identified(request)
        var draft = try context.draft(of: request, body: body)
        if let key = request.idempotencyKey { draft.setField("Idempotency-Key", to: key) }
        return draft
    }

    /// Throws a refusal of the authority; a backend's response is returned, whatever its status.
    private func check(
        _ result: VerifiedResponse, refusals: CallOptions.Refusals
    ) throws(CountersignError) {
        guard let notice = result.notice else { return }
        if notice.isGenuine {
            let error = note(CountersignError(notice))
            if refusals == .thrown { throw error }
        } else if release.authorityKey == nil, refusals == .thrown,
            case .unknownKey? = result.unsignedReason
        {
            throw .authorityKeyMissing(CountersignError.Refusal(notice))
        }
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

extension ClientCore {
    func resolve(_ owner: CallOwner, for caller: APIRequest.Caller) async throws(CountersignError) {
        guard caller == .account, owner.account == nil else { return }
        try await open()
        owner.resolve(try storedState().login?.account)
    }
}
