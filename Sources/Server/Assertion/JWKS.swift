import CountersignHTTP
import CountersignWire

extension AssertionKeys.Edition {
    /// How long backends may keep the list. The next key stands in it long before it signs, so a stale copy does no harm.
    private static let cacheSeconds = 300
    /// How long a key stays listed after its last signature: its assertions have expired by then on any honest clock.
    private static let lingering: Int64 = 2 * Assertion.lifetime

    /// The public halves of the keys that may have signed, and of the one that will. Source: RFC 7517 §5.
    package func keys(at now: Int64) -> [JWK] {
        var keys = [current, next]
        if let previous, now < previous.replaced + AssertionKeys.Edition.lingering { keys.append(previous.key) }
        return keys
    }

    /// The answer of `GET jwks`.
    func answer(at now: Int64) -> Answer {
        let set: JSONValue = ["keys": .array(keys(at: now).map(\.json))]
        return Answer(
            status: 200, type: "application/jwk-set+json",
            fields: [.init("Cache-Control", "public, max-age=\(AssertionKeys.Edition.cacheSeconds)")],
            body: Array((set.text + "\n").utf8))
    }
}

extension AssertionKeys {
    /// The answer of `GET jwks`.
    func answer(at now: Int64) -> Answer {
        do throws(Fault) {
            return try latest().answer(at: now)
        } catch {
            return .notReadable
        }
    }
}

extension Answer {
    /// The store does not give what was asked for, now.
    static let notReadable = Answer(
        status: 503, type: "application/problem+json", fields: [Field("Retry-After", "5")],
        body: Array(#"{"type":"about:blank","title":"Service Unavailable","status":503}"#.utf8))
}
