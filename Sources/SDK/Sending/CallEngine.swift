import CountersignClient
import CountersignMemory
import CountersignSchemes
import CountersignTransport
import CountersignTrust
import CountersignWire

/// What the two kinds of clients differ in when they send an app's calls.
protocol CallEngine: Sendable {
    var context: CallContext { get }

    /// Which copies of a request the server executes once.
    var recognition: CallRepetition.Recognition { get }

    /// Adds the key by which the server recognizes copies of the request, if it does.
    func identified(_ request: APIRequest) -> APIRequest

    /// Sets the account of a call if one is known to be signed in.
    func resolve(_ owner: CallOwner, for caller: APIRequest.Caller) async throws(CountersignError)

    /// Signs and sends the request, and acts on a refusal that it can resolve.
    func sendOnce(
        _ request: APIRequest, call: CountersignEvent.Call, trace: Locked<CallTransport.Trace>,
        options callOptions: CallOptions
    ) async throws(CountersignError) -> APIAnswer

    func signed(_ request: APIRequest, signer: PresenceSigner?) async throws(CountersignError)
        -> SignedRequest
}

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

extension CallEngine {
    /// Sends one call of the app through the interceptors to the server, with as many copies as it needs.
    func send(_ request: APIRequest, options callOptions: CallOptions) async throws(CountersignError)
        -> APIAnswer
    {
        let (request, options, events) = (identified(request), context.options, context.report.events)
        let call = context.names.next(request.method, path: request.path)
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

    /// Sends the request, and repeats it by ``CountersignOptions/retry``.
    private func sendWithRetries(
        _ request: APIRequest, call: CountersignEvent.Call, trace: Locked<CallTransport.Trace>,
        options callOptions: CallOptions
    ) async throws(CountersignError) -> APIAnswer {
        guard callOptions.occasion == .single else {
            return try await sendOnce(request, call: call, trace: trace, options: callOptions)
        }
        let repetition = CallRepetition(
            policy: context.options.retry, recognition: recognition, trace: trace)
        return try await repetition.send(request) { request throws(CountersignError) in
            try await sendOnce(request, call: call, trace: trace, options: callOptions)
        }
    }
}

/// The options that both kinds of clients have.
protocol CallSettings: Sendable {
    var interceptors: [any APIInterceptor] { get }
    var retry: APIRetryPolicy { get }
    var cookies: CountersignOptions.Cookies { get }
    var log: CountersignLog { get }
    var transport: CountersignOptions.TransportChoice { get }
    var clock: DeviceClock { get }
    var json: JSONCoding { get }
    var largestAnswer: Int { get }
    var userAgent: String { get }
}

extension CountersignOptions: CallSettings {}

extension LegacyOptions: CallSettings {}

/// What the calls of both kinds of clients need: the server, and the listeners to events.
struct CallContext: Sendable {
    let base: BaseURL
    let options: any CallSettings
    let carrier: any RequestTransport
    let report: StatePublisher
    let names: CallNames
    let hints: UpdateHints
    let keyLifetime = KeyLifetime()
    let jar: CookieJar

    /// `trust` is the one in force; `report` has the listeners that the options name.
    init(
        _ base: BaseURL, options: any CallSettings, trust: Trust, report: StatePublisher
    ) throws(CountersignError) {
        carrier = try CallContext.carrier(options.transport, trust: trust, events: report.events)
        (self.base, self.options, self.report) = (base, options, report)
        names = CallNames(host: base.origin.host.description)
        hints = UpdateHints(report.events)
        jar = CookieJar(store: CookieStore(), rule: options.cookies, base: base, clock: options.clock)
    }

    /// The draft of a request with its body, to be signed.
    func draft(of request: APIRequest, body: PreparedBody) throws(CountersignError) -> Draft {
        var draft = try draft(of: request)
        if case .bytes(let bytes) = body.body { draft.body = bytes }
        draft.streamed = body.streamed
        return draft
    }

    /// The same without the body.
    func draft(of request: APIRequest) throws(CountersignError) -> Draft {
        var draft = Draft(
            method: request.method.description, target: Array(try base.target(request.path).utf8),
            authority: base.origin.authority, transport: base.origin.security == .tls ? .tls : .plain)
        draft.fields = request.fields.map(Draft.Field.init)
        if request.value(of: "user-agent") == nil { draft.setField("User-Agent", to: options.userAgent) }
        if request.value(of: "cookie") == nil, let value = jar.field(target: draft.target) {
            draft.setField("Cookie", to: value)
        }
        return draft
    }

    /// The signed request for another HTTP stack.
    func signed(_ draft: Draft, of request: APIRequest, body: PreparedBody) -> SignedRequest {
        let inMemory = draft.body.isEmpty ? APIRequest.Body.none : .bytes(draft.body)
        return SignedRequest(
            method: APIMethod(draft.method),
            url: base.origin.description + String(decoding: draft.target, as: UTF8.self),
            fields: draft.fields.map(HeaderField.init), body: body.isInMemory ? inMemory : request.body)
    }

    /// The answer for the app: `response`, with the rest of its body from the transport. `removals` are those
    /// of the cookies before the request was sent.
    func answer(
        _ response: Response, to draft: Draft, over transport: CallTransport, cookiesAt removals: Int,
        signer: APIResponse.Signer = .nobody, expecting expectation: BodyExpectation? = nil
    ) -> APIAnswer {
        let whole = response.message.body
        var (fields, rest) = transport.takeAnswer()
        hints.note(fields)
        jar.take(fields, target: draft.target, unlessRemovedSince: removals)
        if let expectation { rest = rest?.checked(expectation) }
        let length: TransferProgress.Total = rest == nil ? .bytes(Int64(whole.count)) : .told(by: fields)
        return APIAnswer(
            APIResponse(status: response.status, fields: fields, length: length, signer: signer),
            rest ?? APIBytes(whole: whole))
    }

    private static func carrier(
        _ choice: CountersignOptions.TransportChoice, trust: Trust, events: Broadcast<CountersignEvent>
    ) throws(CountersignError) -> any RequestTransport {
        switch choice {
        case .custom(let carrier):
            carrier.replaceTrust(by: trust)
            return carrier
        case .standard(var options):
            let observe = options.observe
            options.observe = { verdict in
                events.tell(.judged(verdict))
                observe(verdict)
            }
            do throws(TransportError) {
                return try PlatformTransport(trust: trust, options: options)
            } catch {
                throw CountersignError(error)
            }
        }
    }
}

extension TransferProgress.Total {
    /// From `Content-Length`, if there is one.
    fileprivate static func told(by fields: [HeaderField]) -> TransferProgress.Total {
        fields.text(of: "content-length").flatMap(Int64.init).map { .bytes($0) } ?? .unknown
    }
}

/// The account of a call: the account that is known to be signed in when the app makes the call, the same for
/// all copies, however long the client hashes a body, waits for an interceptor, or holds traffic back. Calls
/// for the same purpose may share one.
final class CallOwner: Sendable {
    private let resolved = Locked(SignedCalls.Owner.currentAccount)

    /// The owner as the client module takes it.
    var signing: SignedCalls.Owner { resolved.with { $0 } }

    /// Nil while no account is known.
    var account: AccountName? { if case .account(let account) = signing { account } else { nil } }

    /// Sets the owner unless one is set.
    func resolve(_ owner: SignedCalls.Owner?) {
        guard let owner else { return }
        resolved.with { if $0 == .currentAccount { $0 = owner } }
    }

    func resolve(_ account: AccountName?) { resolve(account.map { SignedCalls.Owner.account($0) }) }
}
