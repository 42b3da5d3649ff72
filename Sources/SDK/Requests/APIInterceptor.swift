/// Runs between the app and its server: sees each request before it is signed, and each response.
///
/// ```swift
/// struct Languages: APIInterceptor {
///     func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
///         var request = request
///         request.set("Accept-Language", "de-AT")
///         return try await next(request)
///     }
/// }
/// ```
///
/// The first of ``CountersignOptions/interceptors`` is the outermost. An interceptor may answer without
/// calling `next`, or call it again: then the client signs and sends the request anew. Both calls use the
/// same idempotency key, which the client draws before the first interceptor, so the server executes the
/// request once and repeats the first response. An interceptor that changes the *content* of the request
/// between two calls sets ``APIRequest/idempotencyKey`` to nil, or the server refuses the second
/// (`forbidden`). The request's account stays the same, too: if another account has signed in between two
/// calls, the second throws ``CountersignError/accountChanged``.
public protocol APIInterceptor: Sendable {
    /// Answers `request`, by `next` or otherwise. A ``CountersignError`` that it throws reaches the app
    /// unchanged, any other error as ``CountersignError/intercepted(_:)``.
    func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer
}

/// The rest of the chain: the next interceptor, or the server.
public struct InterceptorChain: Sendable {
    private let rest: ArraySlice<any APIInterceptor>
    private let server: @Sendable (APIRequest) async throws(CountersignError) -> APIAnswer

    /// The chain calls `server` once no interceptor is left.
    init(
        _ rest: ArraySlice<any APIInterceptor>,
        server: @escaping @Sendable (APIRequest) async throws(CountersignError) -> APIAnswer
    ) {
        self.rest = rest
        self.server = server
    }

    /// Passes the request on, and waits for the response's head.
    public func callAsFunction(_ request: APIRequest) async throws(CountersignError) -> APIAnswer {
        guard let interceptor = rest.first else { return try await server(request) }
        do {
            return try await interceptor.intercept(
                request, next: InterceptorChain(rest.dropFirst(), server: server))
        } catch let error as CountersignError {
            throw error
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw .intercepted(error)
        }
    }
}
