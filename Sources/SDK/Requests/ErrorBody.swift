#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension CountersignClient {
    /// The value in an answer's JSON, or the backend's own error.
    ///
    /// A status of 200 to 299 is read as `type`. Any other is read as `failure`, which is thrown; where it is not that, the call
    /// throws ``CountersignError/status(_:body:)``. All else that fails throws ``CountersignError`` too.
    public func value<Value: Decodable, Failure: Error & Decodable>(
        for request: APIRequest, as type: Value.Type = Value.self, orThrow failure: Failure.Type
    ) async throws -> Value {
        do throws(CountersignError) {
            return try await value(for: request, as: type)
        } catch {
            throw error.body(as: failure, coding: core.options.json) ?? error
        }
    }
}

extension CountersignError {
    /// What the backend says in JSON, where this is ``status(_:body:)``; nil where it is not, or where the body is not that.
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
