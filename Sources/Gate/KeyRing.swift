import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Finds the key a claim names. An unknown id gets a key too, one that nobody holds, so that it is refused after the
/// same work.
package struct KeyRing: Sendable {
    private let source: any KeySource
    private let decoys = Decoys()

    package init(_ source: any KeySource) { self.source = source }

    nonisolated(nonsending) package func key(for claim: Claim) async throws(Refusal) -> Candidate {
        do {
            // A key made for one scheme says nothing in another: its holder may know less there than we think.
            if let release = try await source.key(for: claim.keyID), release.scheme == claim.scheme {
                return Candidate(key: release.key, nextKey: release.nextKey, release: release)
            }
            return Candidate(key: decoys.key(for: claim), nextKey: nil, release: nil)
        } catch {
            throw Refusal(.unavailable, "keys: \(error.message)", retryAfter: 5)
        }
    }

    /// For explanations: nil where there is none.
    nonisolated(nonsending) func release(of id: KeyID) async throws(Fault) -> ReleaseKey? {
        try await source.key(for: id)
    }

    /// For explanations: none where the source cannot say.
    nonisolated(nonsending) func siblings(of release: ReleaseKey) async -> [ReleaseKey] {
        (try? await source.siblings(of: release)) ?? []
    }

    /// The key of another signature on the same request: one of the app whose policy asked for it, and whose own release
    /// asks for no other. Else whoever adds a signature that names a release with a laxer policy would choose for this one.
    nonisolated(nonsending) func key(for claim: Claim, ofAppOf first: Candidate) async throws(Refusal) -> Candidate {
        let other = try await key(for: claim)
        guard let release = other.release else { return other }
        guard release.app == first.release?.app else {
            throw Refusal(
                .badSignature, "keyid \(claim.keyID): a key of another app than the one whose policy chose it")
        }
        guard release.allowance.label == first.release?.allowance.label else {
            throw Refusal(.badSignature, "keyid \(claim.keyID): the policy of its release chooses another signature")
        }
        return other
    }
}

/// A key to verify with, and the release it belongs to; nil for the key that nobody holds.
package struct Candidate: Sendable {
    let key: SigningKey
    /// Tried where `key` does not fit.
    let nextKey: SigningKey?
    let release: ReleaseKey?
}
