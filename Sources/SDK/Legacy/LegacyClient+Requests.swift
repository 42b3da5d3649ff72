import CountersignClient
import CountersignMemory
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LegacyClient {
    /// Sends a request and collects its response, of at most ``LegacyOptions/largestAnswer`` bytes.
    ///
    /// If the token has expired (`-101`), the client renews it, once for all requests that find out, and
    /// sends the request again: the server has refused the first copy. It does **not** repeat a request whose
    /// response was lost, because these servers cannot recognize a second copy; ``LegacyOptions/retry``
    /// repeats those with a safe method. An `err` of any other code, and any status, is a response.
    ///
    /// Throws ``CountersignError/accountChanged`` instead of sending it again in the name of another account
    /// that has signed in meanwhile; ``CountersignError/notSignedIn``, and sends nothing, if no account is
    /// signed in and the request's caller is the account; ``CountersignError/signedOut(_:)`` for `-100`;
    /// ``CountersignError/updateRequired(url:)`` for `-99`, and from then on without sending, until
    /// ``resume()``.
    ///
    /// `progress` is called on the transport's thread and must not wait; it starts anew for a repeated
    /// request.
    public func data(
        for request: APIRequest, progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        let limit = options.largestAnswer
        let callOptions = CallOptions(reading: .whole(limit: limit), progress: progress)
        return try await send(request, options: callOptions).collect(upTo: limit)
    }

    /// The value in a response's JSON. Throws ``CountersignError/status(_:body:)`` for any status but 200 to
    /// 299.
    public func value<Value: Decodable>(
        for request: APIRequest, as type: Value.Type = Value.self
    ) async throws(CountersignError) -> Value {
        let (data, response) = try await data(for: request)
        return try options.json.value(type, from: data, of: response)
    }

    /// Sends a body that need not be in memory: the request with `body` in place of its own.
    ///
    /// The scheme decides how much of it is in memory all the same. Without a scheme, and under auth-v2, a
    /// body streams without a signature; under auth-v1 it is read once for its MD5, which is signed, and once
    /// for each copy that is sent. form-md5 and auth-v4, and all of them for forms, sign its content: it is
    /// read into memory, at most ``LegacyOptions/largestAnswer`` bytes. ``APIRequest/Body/once(_:sha256:)``
    /// works if the scheme signs nothing of the body; its digest is not used.
    public func upload(
        _ request: APIRequest, from body: APIRequest.Body,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        var request = request
        request.body = body
        return try await data(for: request, progress: progress)
    }

    /// Waits for a response's head and returns its body as a stream. Until the stream is read to its end or
    /// released, it occupies one of the connections for requests. A body that may be a refusal (JSON of at
    /// most 64 KiB, under any status) is read whole first.
    public func download(
        for request: APIRequest, progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> APIAnswer {
        try await send(request, options: CallOptions(reading: .streamed, progress: progress))
    }

    /// Writes the body of a success to a file, which appears once it is complete and replaces an existing
    /// one. For any other status writes nothing and throws ``CountersignError/status(_:body:)``.
    @discardableResult
    public func download(
        for request: APIRequest, to path: String,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> APIResponse {
        try await FileDraft.download(
            try await download(for: request, progress: progress), to: path, errorUpTo: options.largestAnswer)
    }

    /// Repeats a request, as ``CountersignClient/poll(_:every:)`` does: each round `interval` after the
    /// response before it, leaving out rounds without a response, until the session ends, another account
    /// signs in, or the app's version is retired.
    public func poll(_ request: APIRequest, every interval: Duration) -> APIPolling {
        APIPolling(interval: interval) {
            let limit = self.options.largestAnswer
            let callOptions = CallOptions(
                reading: .whole(limit: limit), owner: LegacyCallOwner(), occasion: .round)
            return { () async throws(CountersignError) in
                try await self.send(request, options: callOptions).collect(upTo: limit)
            }
        }
    }

    /// The signed request as it would be sent now, with its token, for another HTTP stack. Interceptors do
    /// not see it. Valid once, for minutes. The sender interprets the response.
    public func signed(_ request: APIRequest) async throws(CountersignError) -> SignedRequest {
        let owner = LegacyCallOwner()
        await resolve(owner, for: request.caller)
        try await admit(request.caller)
        let (draft, body) = try await draft(of: request)
        do throws(ClientOperationError) {
            if request.caller == .account { try await open() }
            let signed = try await calls.signed(draft, as: request.legacyCaller, of: owner.owner)
            var carried = signed.body.isEmpty ? APIRequest.Body.none : .bytes(signed.body)
            if body.streamed != nil { carried = request.body }
            return SignedRequest(
                method: APIMethod(signed.method), url: "\(base.origin)\(signed.target.asText)",
                fields: signed.fields.map(HeaderField.init), body: carried)
        } catch {
            throw CountersignError(error)
        }
    }
}

extension [UInt8] {
    fileprivate var asText: String { String(decoding: self, as: UTF8.self) }
}

/// The owner of a legacy client's call, the same for all its copies. Calls for the same purpose may share
/// one.
final class LegacyCallOwner: Sendable {
    private let resolved = Locked(LegacyCalls.Owner.currentAccount)

    var owner: LegacyCalls.Owner { resolved.with { $0 } }

    /// Sets the owner if there is none yet.
    func resolve(_ owner: LegacyCalls.Owner?) {
        guard let owner else { return }
        resolved.with { if $0 == .currentAccount { $0 = owner } }
    }
}

extension LegacyClient {
    /// How a call is made, apart from the request.
    struct CallOptions: Sendable {
        var reading: CallTransport.Reading
        var progress: @Sendable (TransferProgress) -> Void = { _ in }
        var owner = LegacyCallOwner()
        var occasion = ClientCore.CallOptions.Occasion.single
    }

    /// Sends one call of the app through the interceptors to the server, with as many copies as it needs.
    func send(_ request: APIRequest, options callOptions: CallOptions) async throws(CountersignError)
        -> APIAnswer
    {
        let call = names.next(request.method, path: request.path)
        let start = options.clock.monotonic()
        let trace = Locked(CallTransport.Trace())
        report.events.tell(.began(call))
        do throws(CountersignError) {
            // While no account is known, an interceptor may answer all the same.
            await resolve(callOptions.owner, for: request.caller)
            let server: @Sendable (APIRequest) async throws(CountersignError) -> APIAnswer = {
                request throws(CountersignError) in
                try await self.sendWithRetries(request, call: call, trace: trace, options: callOptions)
            }
            let answer = try await InterceptorChain(options.interceptors[...], server: server)(request)
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

    /// Sends the request, and repeats it by ``LegacyOptions/retry``.
    private func sendWithRetries(
        _ request: APIRequest, call: CountersignEvent.Call, trace: Locked<CallTransport.Trace>,
        options callOptions: CallOptions
    ) async throws(CountersignError) -> APIAnswer {
        guard callOptions.occasion == .single else {
            return try await sendOnce(request, call: call, trace: trace, options: callOptions)
        }
        let repetition = CallRepetition(
            policy: options.retry, recognition: .none, trace: trace, random: SystemRandom())
        return try await repetition.send(request) { request throws(CountersignError) in
            try await sendOnce(request, call: call, trace: trace, options: callOptions)
        }
    }

    private func sendOnce(
        _ request: APIRequest, call: CountersignEvent.Call, trace: Locked<CallTransport.Trace>,
        options callOptions: CallOptions
    ) async throws(CountersignError) -> APIAnswer {
        try await admit(request.caller)
        await resolve(callOptions.owner, for: request.caller)
        let removals = kept.jar.store.removals
        let (draft, body) = try await draft(of: request)
        let transport = CallTransport(
            self, call: call, trace: trace, streamed: body.streamed, reading: callOptions.reading,
            progress: callOptions.progress)
        let response: Response
        do throws(ClientOperationError) {
            if request.caller == .account { try await open() }
            response = try await calls.send(
                draft, as: request.legacyCaller, of: callOptions.owner.owner, over: transport, body: body.use)
        } catch {
            throw CountersignError(error)
        }
        let (fields, rest) = transport.takeAnswer()
        hints.note(fields)
        kept.jar.take(fields, target: draft.target, unlessRemovedSince: removals)
        let whole = response.message.body
        let length: TransferProgress.Total = rest == nil ? .bytes(Int64(whole.count)) : .told(by: fields)
        return APIAnswer(
            APIResponse(status: response.status, fields: fields, length: length),
            rest ?? APIBytes(whole: whole))
    }

    /// The draft that the scheme signs.
    func draft(of request: APIRequest) async throws(CountersignError) -> (draft: Draft, body: LegacyBody) {
        var draft = Draft(
            method: request.method.description, target: Array(try base.target(request.path).utf8),
            authority: base.origin.authority, transport: base.origin.security == .tls ? .tls : .plain)
        draft.fields = request.fields.map(Draft.Field.init)
        if request.value(of: "user-agent") == nil { draft.setField("User-Agent", to: options.userAgent) }
        if request.value(of: "cookie") == nil, let value = kept.jar.field(for: draft) {
            draft.setField("Cookie", to: value)
        }
        let need = account.signing.need(ofFormBody: draft.request().hasFormType)
        let body = try await LegacyBody(request.body, need: need, most: options.largestAnswer)
        (draft.body, draft.streamed) = (body.bytes, body.digest)
        return (draft, body)
    }

    /// Sets the owner of a call if an account is known to be signed in.
    func resolve(_ owner: LegacyCallOwner, for caller: APIRequest.Caller) async {
        guard caller == .account, owner.owner == .currentAccount, (try? await open()) != nil else {
            return
        }
        owner.resolve(await calls.owner())
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
