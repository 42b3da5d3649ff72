import CountersignTransport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension CountersignClient {
    /// Sends a request and collects its answer, of ``CountersignOptions/largestAnswer`` bytes at most.
    ///
    /// A token that ran out is renewed and a clock that is wrong is corrected on the way, once each, and the request is sent again.
    /// One whose answer was lost is sent again, too: the server tells the copies by their idempotency key, and does once what
    /// they ask. A status of 400 and above is the backend's, and no error. `progress` is called on the transport's thread and must
    /// not wait; a copy that is sent again begins anew.
    public func data(
        for request: APIRequest, progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        try await data(for: request, .single, progress)
    }

    func data(
        for request: APIRequest, _ occasion: ClientCore.Manner.Occasion, by owner: CallOwner = CallOwner(),
        _ progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        let limit = core.options.largestAnswer
        let manner = ClientCore.Manner(
            reading: .whole(limit: limit), signer: signer, progress: progress, occasion: occasion, owner: owner)
        let answer = try await core.send(request, manner)
        return (Data(try await answer.body.collect(upTo: limit)), answer.response)
    }

    /// The value in an answer's JSON. Throws ``CountersignError/status(_:body:)`` for any status but 200 to 299.
    public func value<Value: Decodable>(
        for request: APIRequest, as type: Value.Type = Value.self
    ) async throws(CountersignError) -> Value {
        let (data, response) = try await data(for: request)
        guard response.isSuccess else { throw .status(response, body: Array(data)) }
        do {
            return try core.options.json.decoder.decode(type, from: data)
        } catch {
            throw .decoding("\(error)")
        }
    }

    /// Sends a body that need not be in memory: the request with `body` in the place of its own.
    public func upload(
        _ request: APIRequest, from body: APIRequest.Body,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        var request = request
        request.body = body
        return try await data(for: request, progress: progress)
    }

    /// Waits for an answer's head, and gives its body as it comes. Until it is read to its end, or let go of, it takes one of the
    /// places for requests. A body that streams is covered by no signature: TLS speaks for it.
    public func download(
        for request: APIRequest, progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> APIAnswer {
        try await core.send(request, ClientCore.Manner(reading: .streamed, signer: signer, progress: progress))
    }

    /// Writes the body of a success to a file, which is there only once it is whole; whatever stood there is replaced. Of any other
    /// status nothing is written, and ``CountersignError/status(_:body:)`` is thrown.
    @discardableResult
    public func download(
        for request: APIRequest, to path: String,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> APIResponse {
        try await FileDraft.download(
            try await download(for: request, progress: progress), to: path, errorUpTo: core.options.largestAnswer)
    }

    /// A request as it would be sent now, for another HTTP stack. Interceptors do not see it. Each one bears its own nonce, is good
    /// once, and for a minute; a token that is known to have run out is renewed first.
    public func signed(_ request: APIRequest) async throws(CountersignError) -> SignedRequest {
        try await core.signed(request, signer)
    }
}
