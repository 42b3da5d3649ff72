import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignServer
import CountersignWire

/// Finds the token that a request presents.
final class APITokenCheck: Sendable {
    static let unauthorized = APIProblem(
        401, code: "unauthorized",
        detail: "expected Authorization: Bearer with a token of `countersign token add`",
        fields: [ServerResponse.Field("WWW-Authenticate", value: #"Bearer realm="countersign""#)])

    private let known = Locked(KnownTokens())

    func token(
        of request: Request, configuration: Configuration, clock: TrustedClock
    ) throws(APIProblem) -> APIToken {
        let unauthorized = APITokenCheck.unauthorized
        guard let field = request.value(of: .authorization) else { throw unauthorized }
        let text = request.head.span.extracting(field.range)
        guard text.count > 7, text.extracting(0..<7).matchesWithoutCase("bearer ") else { throw unauthorized }
        let presented = text.extracting(7..<text.count)
        guard
            let found = try token(
                presented, of: .program, configuration: configuration, clock: clock)
        else {
            throw unauthorized
        }
        return found
    }

    /// Returns the live token with this text and kind, or nil if no such token exists or it has expired.
    func token(
        _ text: Span<UInt8>, of kind: APIToken.Kind, configuration: Configuration, clock: TrustedClock
    ) throws(APIProblem) -> APIToken? {
        do throws(OperationalError) {
            let all = try currentTokens(of: configuration)
            return APIToken.find(text, of: kind, among: all, at: clock.estimate)
        } catch {
            // The caller has proved nothing, and learns no path.
            throw APIProblem(
                503, code: "unavailable",
                detail: "the tokens cannot be read; `countersign token list` says why")
        }
    }

    /// Whether a token that was found before is still one: a call may have waited.
    func isCurrent(_ token: APIToken, for host: CommandHost) -> Bool {
        let now = host.clock.estimate
        return (try? currentTokens(of: host.configuration))?.contains {
            $0.id == token.id && !$0.hasExpired(at: now)
        }
            ?? false
    }

    /// Reads the file again if it has changed: a revoked token is refused from the next request on.
    private func currentTokens(of configuration: Configuration) throws(OperationalError) -> [APIToken] {
        let file = APITokenFile(try DataFolder(configuration.data, absence: .fail))
        let stamp = file.stamp()
        if let known = known.with({ $0.tokens(of: stamp) }) { return known }
        let fresh = try file.tokens()
        known.with { $0 = KnownTokens(stamp: stamp, tokens: fresh) }
        return fresh
    }

    /// The tokens as they were read last.
    private struct KnownTokens: Sendable {
        var stamp: APITokenFile.Stamp?
        var tokens: [APIToken] = []

        /// Nil if the file has changed since.
        func tokens(of stamp: APITokenFile.Stamp?) -> [APIToken]? {
            guard let stamp, stamp == self.stamp else { return nil }
            return tokens
        }
    }
}
