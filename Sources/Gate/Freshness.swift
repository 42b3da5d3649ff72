import CountersignSchemes
import CountersignWire

/// A proof that is neither old nor from the future. Only ``Freshness`` can make one.
package struct Fresh: ~Copyable, Sendable {
    let claim: Claim
    let release: ReleaseKey
    /// Whole Unix seconds; nil where the scheme does not sign a time.
    let created: Int64?
    /// When it was checked.
    let now: Int64

    fileprivate init(_ proof: consuming Proof, created: Int64?, now: Int64) {
        claim = proof.claim
        release = proof.release
        self.created = created
        self.now = now
    }
}

/// Was it signed just now?
package struct Freshness: Sendable {
    package init() {}

    package func check(_ proof: consuming Proof, at now: Int64) throws(Refusal) -> Fresh {
        fatalError("follows in the next commit")
    }
}
