import CountersignClient
import CountersignMemory
import CountersignTransport
import CountersignTrust
import CountersignWire

extension LegacyClient: CallEngine {
    var recognition: CallRepetition.Recognition { .none }

    func identified(_ request: APIRequest) -> APIRequest { request }

    func resolve(_ owner: CallOwner, for caller: APIRequest.Caller) async {
        guard caller == .account, owner.signing == .currentAccount, (try? await open()) != nil else {
            return
        }
        owner.resolve(await calls.owner())
    }

    func sendOnce(
        _ request: APIRequest, call: CountersignEvent.Call, trace: Locked<CallTransport.Trace>,
        options callOptions: CallOptions
    ) async throws(CountersignError) -> APIAnswer {
        try await admit(request.caller)
        await resolve(callOptions.owner, for: request.caller)
        let removals = context.jar.store.removals
        let (draft, body) = try await draft(of: request)
        let transport = CallTransport(
            context, call: call, trace: trace, body: body, dialect: LegacyDialect(), options: callOptions)
        do throws(ClientOperationError) {
            if request.caller == .account { try await open() }
            let response = try await calls.send(
                draft, as: request.legacyCaller, of: callOptions.owner.signing, over: transport,
                body: body.use)
            return context.answer(response, to: draft, over: transport, cookiesAt: removals)
        } catch {
            throw CountersignError(error)
        }
    }

    func signed(_ request: APIRequest, signer: PresenceSigner?) async throws(CountersignError)
        -> SignedRequest
    {
        let owner = CallOwner()
        await resolve(owner, for: request.caller)
        try await admit(request.caller)
        let (draft, body) = try await draft(of: request)
        do throws(ClientOperationError) {
            if request.caller == .account { try await open() }
            let signed = try await calls.signed(draft, as: request.legacyCaller, of: owner.signing)
            return context.signed(signed, of: request, body: body)
        } catch {
            throw CountersignError(error)
        }
    }

    /// The draft that the scheme signs.
    private func draft(
        of request: APIRequest
    ) async throws(CountersignError) -> (draft: Draft, body: PreparedBody) {
        let plain = try context.draft(of: request)
        let need = account.signing.need(ofFormBody: plain.request().hasFormType)
        let body = try await PreparedBody(request.body, need: need, most: options.largestAnswer)
        return (try context.draft(of: request, body: body), body)
    }
}

extension APIRequest {
    fileprivate var legacyCaller: LegacyCalls.Caller {
        switch caller {
        case .account: .user
        case .app: .app
        }
    }
}
