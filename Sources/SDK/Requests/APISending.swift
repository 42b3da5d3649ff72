import CountersignTransport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Sends an app's requests: ``CountersignClient`` or, to a server without Countersign, ``LegacyClient``.
///
/// A type of the app's own that wraps a client conforms with that client's ``sender``.
public protocol APISending: Sendable {
    /// Signs and sends the requests. Only clients create one.
    var sender: APISender { get }
}

/// The part of a client that signs and sends requests; ``APISending`` has its methods.
public struct APISender: Sendable {
    let engine: any CallEngine
    /// Set if the user is present.
    var signer: PresenceSigner?

    fileprivate var options: any CallSettings { engine.context.options }

    fileprivate func send(
        _ request: APIRequest, reading: CallTransport.Reading,
        progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(CountersignError) -> APIAnswer {
        try await engine.send(
            request, options: CallOptions(reading: reading, signer: signer, progress: progress))
    }
}

extension APISending {
    /// What the client does, from now on, for a log. For any number of listeners; a slow listener loses the
    /// oldest of more than a thousand waiting events. Holds no secrets: a path comes without its query. Ends
    /// when the client does.
    public var events: AsyncStream<CountersignEvent> { sender.engine.context.report.events.stream() }

    /// The cookies that the server has set; empty unless the options (``CountersignOptions/cookies``) keep
    /// them.
    public var cookies: CookieStore { sender.engine.context.jar.store }

    /// Sends a request and collects its response, of at most ``CountersignOptions/largestAnswer`` bytes.
    ///
    /// If the token has expired or the clock is wrong, the client renews or corrects it, once each, and sends
    /// the request again. It also repeats a request whose response was lost: the server recognizes the copies
    /// by their idempotency key and executes the request once. A status of 400 and above is the backend's,
    /// and not an error. `progress` is called on the transport's thread and must not wait; it starts anew for
    /// a repeated request. ``LegacyClient`` lists what it does otherwise.
    public func data(
        for request: APIRequest, progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        let limit = sender.options.largestAnswer
        let answer = try await sender.send(request, reading: .whole(limit: limit), progress: progress)
        return try await answer.collect(upTo: limit)
    }

    /// The value in a response's JSON. Throws ``CountersignError/status(_:body:)`` for any status but 200 to
    /// 299.
    public func value<Value: Decodable>(
        for request: APIRequest, as type: Value.Type = Value.self
    ) async throws(CountersignError) -> Value {
        let (data, response) = try await data(for: request)
        return try sender.options.json.value(type, from: data, of: response)
    }

    /// Sends a body that need not be in memory: the request with `body` in place of its own.
    public func upload(
        _ request: APIRequest, from body: APIRequest.Body,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> (Data, APIResponse) {
        var request = request
        request.body = body
        return try await data(for: request, progress: progress)
    }

    /// Waits for a response's head and returns its body as a stream. Until the stream is read to its end or
    /// released, it occupies one of the connections for requests. No signature covers a body that streams:
    /// only TLS protects it.
    public func download(
        for request: APIRequest, progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> APIAnswer {
        try await sender.send(request, reading: .streamed, progress: progress)
    }

    /// Writes the body of a success to a file, which appears once it is complete and replaces an existing
    /// one. For any other status writes nothing and throws ``CountersignError/status(_:body:)``.
    @discardableResult
    public func download(
        for request: APIRequest, to path: String,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(CountersignError) -> APIResponse {
        try await FileDraft.download(
            try await download(for: request, progress: progress), to: path,
            errorUpTo: sender.options.largestAnswer)
    }

    /// Repeats a request, the first round at once and each later one `interval` after the response before it.
    /// Leaves out a round without a response. Ends by throwing when the session ends, when another account
    /// signs in, and when the authority requires another version, whichever request found out and whatever
    /// ``CountersignOptions/whenPaused`` says.
    public func poll(_ request: APIRequest, every interval: Duration) -> APIPolling {
        APIPolling(interval: interval) { [sender] in
            // All rounds belong to the account of the first round.
            let limit = sender.options.largestAnswer
            let callOptions = CallOptions(
                reading: .whole(limit: limit), signer: sender.signer, occasion: .round)
            return { () async throws(CountersignError) in
                try await sender.engine.send(request, options: callOptions).collect(upTo: limit)
            }
        }
    }

    /// The signed request as it would be sent now, for another HTTP stack. Interceptors do not see it. Each
    /// one has its own nonce and is valid once, for a minute; the client first renews a token that is known
    /// to have expired.
    public func signed(_ request: APIRequest) async throws(CountersignError) -> SignedRequest {
        try await sender.engine.signed(request, signer: sender.signer)
    }

    /// The value in a response's JSON, or the backend's own error.
    ///
    /// Decodes a status of 200 to 299 as `type`. Decodes any other as `failure` and throws that; if it cannot
    /// be decoded so, throws ``CountersignError/status(_:body:)``. Every other failure is a
    /// ``CountersignError``, too.
    public func value<Value: Decodable, Failure: Error & Decodable>(
        for request: APIRequest, as type: Value.Type = Value.self, orThrow failure: Failure.Type
    ) async throws -> Value {
        do throws(CountersignError) {
            return try await value(for: request, as: type)
        } catch {
            throw error.body(as: failure, coding: sender.options.json) ?? error
        }
    }
}

extension APIAnswer {
    /// The whole body, if it has no more than `limit` bytes, and the head.
    func collect(upTo limit: Int) async throws(CountersignError) -> (Data, APIResponse) {
        (Data(try await body.collect(upTo: limit)), response)
    }
}

extension CountersignError {
    /// The backend's error in JSON if this is ``status(_:body:)``; nil for other cases, and if the body
    /// cannot be decoded so.
    public func body<Value: Decodable>(as type: Value.Type, coding: JSONCoding = .standard) -> Value? {
        guard case .status(_, let body) = self else { return nil }
        return try? coding.decoder.decode(type, from: Data(body))
    }
}

/// A problem as many backends describe it: `application/problem+json`. Source: RFC 9457 §3.1.
public struct ProblemDetails: Error, Decodable, Sendable, Hashable {
    /// A URI that names the kind of problem; nil stands for `about:blank`.
    public let type: String?
    /// A short summary for people.
    public let title: String?
    /// The status, which the response has, too.
    public let status: Int?
    /// What is wrong in this case, for people.
    public let detail: String?
    /// A URI that names this case.
    public let instance: String?
}
