import CountersignAuthority
import CountersignHTTP
import CountersignSeal
import CountersignThreads
import CountersignWire

/// The keys that sign assertions, in memory. The next request sees a rotation by another process.
///
/// Safe to share: `edition` is read and replaced under `lock` only.
package final class AssertionKeys: @unchecked Sendable {
    /// The keys as of one reading of the store.
    package struct Edition: Sendable {
        let signer: Ed25519.Signer
        /// The public half of the key that signs.
        package let current: JWK
        package let next: JWK
        let previous: (key: JWK, replaced: Int64)?
        /// `{"alg":"EdDSA",…}` in base64url, the same for all assertions that this key signs.
        let header: [UInt8]
        fileprivate let generation: UInt64
    }

    private let deployment: Deployment
    /// Guards `edition`.
    private let lock = ReadWriteLock()
    private var edition: Edition

    /// Makes the keys if the deployment has none yet.
    package init(_ deployment: Deployment) throws(OperationalError) {
        self.deployment = deployment
        edition = try AssertionKeys.load(deployment)
    }

    /// Throws if the store cannot be read after a change: the cached key may have been withdrawn.
    package func latest() throws(OperationalError) -> Edition {
        let held = lock.read { edition }
        if held.generation == deployment.generation.current { return held }
        let fresh = try AssertionKeys.load(deployment)
        lock.write { edition = fresh }
        return fresh
    }

    /// Reads the generation before the store: a change between the two reads is then loaded twice, never
    /// missed.
    private static func load(_ deployment: Deployment) throws(OperationalError) -> Edition {
        let generation = deployment.generation.current
        let seeds = try deployment.assertionSeeds()
        guard let signer = Ed25519.Signer(seed: seeds.current),
            let next = AnswerKey.publicHalf(of: seeds.next)
        else {
            throw OperationalError(.failed, message: "assertion keys: not Ed25519 seeds")
        }
        let current = JWK(publicHalf: signer.publicHalf)
        // The `typ` prevents other kinds of token that this key may sign later from passing for an assertion.
        // RFC 8725 §3.11.
        let header: JSONValue = [
            "alg": "EdDSA", "typ": "countersign-assertion+jwt", "kid": .string(current.id),
        ]
        return Edition(
            signer: signer, current: current, next: JWK(publicHalf: next),
            previous: seeds.previous.map { (JWK(publicHalf: $0.publicHalf), $0.replaced) },
            header: Array(Base64.encode(Array(header.text.utf8).span, as: .url).utf8), generation: generation)
    }
}

/// The public half of an Ed25519 key as clients fetch it. Source: RFC 7517, RFC 8037 §2.
package struct JWK: Sendable {
    private let x: String
    /// The key's RFC 7638 thumbprint: SHA-256 over its required members in canonical order, in base64url.
    package let id: String

    /// `publicHalf` is 32 bytes.
    package init(publicHalf: [UInt8]) {
        x = Base64.encode(publicHalf.span, as: .url)
        let required: JSONValue = ["crv": "Ed25519", "kty": "OKP", "x": .string(x)]
        id = Base64.encode(SHA256.digest(Array(required.text.utf8).span).span, as: .url)
    }

    /// The id and the public half.
    package var text: String { "\(id) \(x)" }

    var json: JSONValue {
        [
            "kty": "OKP", "crv": "Ed25519", "x": .string(x), "kid": .string(id), "use": "sig", "alg": "EdDSA",
        ]
    }
}

extension AssertionKeys.Edition {
    /// How long backends may cache the list. The next key is listed long before it signs, so a stale copy
    /// does no harm.
    private static let cacheSeconds = 300
    /// How long a key stays listed after its last signature. By then its assertions have expired on any
    /// correct clock.
    private static let lingering: Int64 = 2 * Assertion.lifetime

    /// The public halves of the keys that may have signed, and of the next key. Source: RFC 7517 §5.
    package func keys(at now: Int64) -> [JWK] {
        var keys = [current, next]
        if let previous, now < previous.replaced + AssertionKeys.Edition.lingering {
            keys.append(previous.key)
        }
        return keys
    }

    /// The answer of `GET jwks`.
    func answer(at now: Int64) -> ServerResponse {
        let set: JSONValue = ["keys": .array(keys(at: now).map(\.json))]
        return ServerResponse(
            status: 200, type: "application/jwk-set+json",
            fields: [.init("Cache-Control", value: "public, max-age=\(AssertionKeys.Edition.cacheSeconds)")],
            body: Array((set.text + "\n").utf8))
    }
}

extension AssertionKeys {
    /// The answer of `GET jwks`.
    func answer(at now: Int64) -> ServerResponse {
        do {
            return try latest().answer(at: now)
        } catch {
            return .notReadable
        }
    }
}

extension ServerResponse {
    /// The store does not give what was asked for, now.
    static let notReadable = ServerResponse(
        status: 503, type: "application/problem+json", fields: [Field("Retry-After", value: "5")],
        body: Array(#"{"type":"about:blank","title":"Service Unavailable","status":503}"#.utf8))
}
