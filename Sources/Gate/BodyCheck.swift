import CountersignSchemes
import CountersignWire

/// A fresh proof of the whole request: the body is the signed one, or will stream past a digest of it. Only
/// ``BodyCheck`` can make one.
package struct CompleteProof: ~Copyable, Sendable {
    let fresh: Fresh

    fileprivate init(_ fresh: consuming Fresh) { self.fresh = fresh }
}

/// Is the body that came the signed one?
package struct BodyCheck: Sendable {
    package init() {}

    /// Of a body that streams, the expectation goes along with the caller.
    package func callAsFunction(
        _ request: Request, _ fresh: consuming Fresh, at now: Int64
    ) throws(Refusal) -> CompleteProof {
        if request.isBodyWhole { try fresh.body.check(request.body.span) }
        fresh.now = now
        return CompleteProof(fresh)
    }
}
