/// Stands between the app and its server: sees each request before it is signed, and each answer.
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
/// The first of ``CountersignOptions/interceptors`` is the outermost. One may answer without calling `next`, or call it again: then the
/// request is signed anew and sent again. It still is the same wish: the idempotency key was drawn before the first interceptor,
/// and goes along. So the server does once what it gets twice, and gives the first copy's answer to the second. Who changes
/// *what* is asked between two calls sets ``APIRequest/idempotencyKey`` to nil, or is refused (`forbidden`).
/// Whose request it is stays, too: where somebody else has signed in between two calls, the second throws
/// ``CountersignError/accountChanged``.
public protocol APIInterceptor: Sendable {
    /// Answers `request`, by `next` or otherwise. A ``CountersignError`` that it throws reaches the app as it is, any other
    /// error as ``CountersignError/intercepted(_:)``.
    func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer
}

/// The rest of the chain: the next interceptor, or the server.
public struct InterceptorChain: Sendable {
    private let rest: ArraySlice<any APIInterceptor>
    private let server: @Sendable (APIRequest) async throws(CountersignError) -> APIAnswer

    /// `server` is asked once no interceptor is left.
    init(
        _ rest: ArraySlice<any APIInterceptor>,
        _ server: @escaping @Sendable (APIRequest) async throws(CountersignError) -> APIAnswer
    ) {
        self.rest = rest
        self.server = server
    }

    /// Hands the request on, and waits for the answer's head.
    public func callAsFunction(_ request: APIRequest) async throws(CountersignError) -> APIAnswer {
        guard let interceptor = rest.first else { return try await server(request) }
        do {
            return try await interceptor.intercept(request, next: InterceptorChain(rest.dropFirst(), server))
        } catch let error as CountersignError {
            throw error
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw .intercepted(error)
        }
    }
}
