import CountersignAuthority
import CountersignSeal
import CountersignWire

/// The keys that sign assertions, in memory. A rotation by another process is seen by the next request.
///
/// Safe to share: `snapshot` is read and replaced under `lock` only.
package final class AssertionKeys: @unchecked Sendable {
    /// The keys as of one reading of the store.
    package struct Edition: Sendable {
        let signer: Ed25519.Signer
        /// Of the key that signs.
        package let current: JWK
        package let next: JWK
        let previous: (key: JWK, replaced: Int64)?
        /// `{"alg":"EdDSA",…}` in base64url, the same for all that this key signs.
        let header: [UInt8]
        fileprivate let generation: UInt64
    }

    private let deployment: Deployment
    /// Guards `edition`.
    private let lock = ReadWriteLock()
    private var edition: Edition

    /// Makes the keys where the deployment has none yet.
    package init(_ deployment: Deployment) throws(Fault) {
        self.deployment = deployment
        edition = try AssertionKeys.load(deployment)
    }

    /// Fails closed where the store cannot be read after a change: the key in hand could be one that had to go.
    package func latest() throws(Fault) -> Edition {
        let held = lock.read { edition }
        if held.generation == deployment.generation.current { return held }
        let fresh = try AssertionKeys.load(deployment)
        lock.write { edition = fresh }
        return fresh
    }

    /// The generation is read before the store: a change that comes between the two is then loaded twice, never missed.
    private static func load(_ deployment: Deployment) throws(Fault) -> Edition {
        let generation = deployment.generation.current
        let seeds = try deployment.assertionSeeds()
        guard let signer = Ed25519.Signer(seed: seeds.current), let next = AnswerKey.publicHalf(of: seeds.next) else {
            throw Fault(.failed, "assertion keys: not Ed25519 seeds")
        }
        let current = JWK(publicHalf: signer.publicHalf)
        // Typed, so that no other kind of token that this key might come to sign passes for an assertion. RFC 8725 §3.11.
        let header: JSONValue = [
            "alg": "EdDSA", "typ": "countersign-assertion+jwt", "kid": .string(current.id),
        ]
        return Edition(
            signer: signer, current: current, next: JWK(publicHalf: next),
            previous: seeds.previous.map { (JWK(publicHalf: $0.publicHalf), $0.replaced) },
            header: Array(Base64.encode(Array(header.text.utf8).span, .url).utf8), generation: generation)
    }
}
