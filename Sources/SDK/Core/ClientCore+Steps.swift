import CountersignClient
import CountersignTransport
import CountersignWire

extension ClientCore {
    /// One of the state machine's own steps, with what goes wrong in an app's terms.
    func step<Result: Sendable>(
        _ signer: PassingSigner?,
        _ body: @Sendable (Installation, Surroundings) async throws(ClientProblem) -> Result
    ) async throws(CountersignError) -> Result {
        try await open()
        do throws(ClientProblem) {
            var way = surroundings
            way.signer = signer?.present
            let result = try await body(installation, way)
            noteClock()
            return result
        } catch {
            throw note(Task.isCancelled ? .cancelled : CountersignError(error))
        }
    }

    /// The request with its signature. A token that is known to have run out is renewed first: whoever sends this cannot.
    func signed(_ request: APIRequest, _ signer: PassingSigner?) async throws(CountersignError) -> SignedRequest {
        let owner = CallOwner()
        try await open()
        try await settle(owner, for: request.caller)
        try await admit(request.caller, owner)
        try await settle(owner, for: request.caller)
        let request = named(request)
        let body = try await PreparedBody(request.body)
        let plain = try draft(request, body)
        if request.caller == .account, try hasRunOut() {
            _ = try await step(signer) { (installation, way) async throws(ClientProblem) in
                try await AccountSessions(installation, way).current()
            }
        }
        var way = surroundings
        way.signer = signer?.present
        do throws(ClientProblem) {
            let draft =
                switch request.caller {
                case .account: try SignedCalls(installation, way).signed(plain, as: owner.signing)
                case .app: try ReleaseCalls(installation, way).signed(plain)
                }
            return SignedRequest(
                method: APIMethod(draft.method),
                url: base.origin.description + String(decoding: draft.target, as: UTF8.self),
                fields: draft.fields.map(HeaderField.init), body: request.body)
        } catch {
            throw CountersignError(error)
        }
    }

    private func hasRunOut() throws(CountersignError) -> Bool {
        do throws(ClientProblem) {
            guard let login = try keeper.state().login else { return false }
            return try login.expires <= surroundings.now()
        } catch {
            throw CountersignError(error)
        }
    }
}
