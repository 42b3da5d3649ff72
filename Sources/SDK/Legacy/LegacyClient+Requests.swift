import CountersignClient
import CountersignTransport
import CountersignWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LegacyClient {
    /// Sends a request and collects its answer, of ``LegacyOptions/largestAnswer`` bytes at most.
    ///
    /// A token that ran out (`-101`) is renewed on the way, once however many requests find out, and the
    /// request is sent again: the server has refused the first copy. One whose answer was lost is **not**
    /// sent again, for these servers cannot tell a second copy from a second wish. An `err` of any other
    /// code, and any status, is an answer.
    ///
    /// Throws ``CountersignError/accountChanged`` rather than send it again in the name of somebody else who
    /// has signed in meanwhile; ``CountersignError/notSignedIn``, and sends nothing, where nobody is signed
    /// in and the request's caller is the account; ``CountersignError/signedOut(_:)`` for `-100`;
    /// ``CountersignError/updateRequired(url:)`` for `-99`, and from then on without sending, until
    /// ``resume()``.
    ///
    /// `progress` is called on the transport's thread and must not wait; a copy that is sent again begins
    /// anew.
    public func data(
        for request: APIRequest, progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        try await data(for: request, by: LegacyCallOwner(), progress)
    }

    func data(
        for request: APIRequest, by owner: LegacyCallOwner,
        _ progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        let limit = options.largestAnswer
        let answer = try await send(
            request, Manner(reading: .whole(limit: limit), progress: progress, owner: owner))
        return (Data(try await answer.body.collect(upTo: limit)), answer.response)
    }

    /// The value in an answer's JSON. Throws ``CountersignError/status(_:body:)`` for any status but 200 to 299.
    public func value<Value: Decodable>(
        for request: APIRequest, as type: Value.Type = Value.self
    ) async throws(CountersignError) -> Value {
        let (data, response) = try await data(for: request)
        guard response.isSuccess else { throw .status(response, body: Array(data)) }
        do {
            return try options.json.decoder.decode(type, from: data)
        } catch {
            throw .decoding("\(error)")
        }
    }

    /// Sends a body that need not be in memory: the request with `body` in the place of its own.
    ///
    /// How much of it is in memory all the same is the scheme's doing. Without a scheme, and under auth-v2, a
    /// body streams and nothing signs it; under auth-v1 it is read once for its MD5, which is signed, and
    /// once for each copy that is sent. form-md5 and auth-v4, and all of them for forms, sign what stands in
    /// it: it is read into memory, ``LegacyOptions/largestAnswer`` bytes at most.
    /// ``APIRequest/Body/once(_:sha256:)`` goes where nothing is signed of it; its digest is not looked at.
    public func upload(
        _ request: APIRequest, from body: APIRequest.Body,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        var request = request
        request.body = body
        return try await data(for: request, progress: progress)
    }

    /// Waits for an answer's head, and gives its body as it comes. Until it is read to its end, or let go of,
    /// it takes one of the places for requests. A body that may be a refusal (JSON of 64 KiB at most,
    /// whatever its status) is read whole first.
    public func download(
        for request: APIRequest, progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> APIAnswer {
        try await send(request, Manner(reading: .streamed, progress: progress))
    }

    /// Writes the body of a success to a file, which is there only once it is whole; whatever stood there is
    /// replaced. Of any other status nothing is written, and ``CountersignError/status(_:body:)`` is thrown.
    @discardableResult
    public func download(
        for request: APIRequest, to path: String,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> APIResponse {
        try await FileDraft.download(
            try await download(for: request, progress: progress), to: path, errorUpTo: options.largestAnswer)
    }

    /// The same request again and again, as ``CountersignClient/poll(_:every:)`` does: each round `interval`
    /// after the answer before it, one in which there is no answer left out, until the session ends, somebody
    /// else signs in, or the app's version is retired.
    public func poll(_ request: APIRequest, every interval: Duration) -> APIPolling {
        APIPolling(interval: interval) {
            let owner = LegacyCallOwner()
            return { () async throws(CountersignError) in try await self.data(for: request, by: owner) }
        }
    }

    /// A request as it would be sent now, token and all, for another HTTP stack. Interceptors do not see it.
    /// Good once, and for minutes. What comes back is for the sender to read.
    public func signed(_ request: APIRequest) async throws(CountersignError) -> SignedRequest {
        let owner = LegacyCallOwner()
        await settle(owner, for: request.caller)
        try await admit(request.caller)
        let (draft, body) = try await draft(of: request)
        do throws(LegacyProblem) {
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
