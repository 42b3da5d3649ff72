import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Rotation of a release's key: while clients with both keys are in the field, both verify; then the next
/// key becomes the only one. Each step is durable, and visible to a running server, when its call returns.
extension Deployment {
    package func addNextKey(_ material: KeyMaterial, to id: KeyID) throws(OperationalError) {
        let release = try release(id)
        if case .publicKey = material, release.scheme != .messageSignatures {
            throw OperationalError(
                .usage,
                message:
                    "a public key is for message-signatures; \(release.scheme.rawValue) has shared secrets")
        }
        guard try !open(release.sealedSecret, as: .current, of: release).isSame(as: material) else {
            throw OperationalError(
                .failed,
                message: "release \(id): it has this key already; the next key must be a different one")
        }
        let kind: JSONValue = if case .publicKey = material { "public" } else { "secret" }
        let draft = auditDraft(for: .nextKeyAdd, on: .release(id, of: release.app), details: [("key", kind)])
        guard release.sealedNextSecret == nil,
            try store.insertNext(seal(material, as: .next, of: release), of: id, recording: draft) == .yes
        else {
            throw OperationalError(
                .failed,
                message: "release \(id): it has a next key; --promote makes it the key, --cancel drops it")
        }
        generation.advance()
    }

    /// Makes the next key the only one that verifies.
    package func promoteNextKey(of id: KeyID) throws(OperationalError) {
        let release = try release(id)
        guard let sealed = release.sealedNextSecret else { throw Deployment.noNextKey(id) }
        let material = try open(sealed, as: .next, of: release)
        let draft = auditDraft(for: .nextKeyPromote, on: .release(id, of: release.app))
        let current = seal(material, as: .current, of: release)
        guard try store.promote(sealed, as: current, of: id, recording: draft) == .yes else {
            throw OperationalError(
                .failed, message: "release \(id): its next key was changed meanwhile; nothing was done")
        }
        generation.advance()
    }

    /// Drops the next key, which then no longer verifies.
    package func dropNextKey(of id: KeyID) throws(OperationalError) {
        let draft = auditDraft(for: .nextKeyDrop, on: .release(id, of: try release(id).app))
        guard try store.removeNext(of: id, recording: draft) == .yes else { throw Deployment.noNextKey(id) }
        generation.advance()
    }

    private static func noNextKey(_ id: KeyID) -> OperationalError {
        OperationalError(
            .failed,
            message: "release \(id): it has no next key; `countersign release rotate \(id)` makes one")
    }
}

extension KeyMaterial {
    fileprivate func isSame(as other: KeyMaterial) -> Bool {
        switch (self, other) {
        case (.secret(let left), .secret(let right)):
            left.withExposedBytes { left in
                right.withExposedBytes { ConstantTime.equals(left, $0) == .equal }
            }
        case (.publicKey(let left), .publicKey(let right)):
            left.der == right.der && left.algorithm == right.algorithm
        default: false
        }
    }
}

extension Deployment {
    /// The releases other than `id` that have `secret` as their key or next key. Some teams share one
    /// secret over versions, which works, and lets a client that has one of these versions sign for all of
    /// them.
    ///
    /// The comparison uses digests under a temporary key, so that no two secrets are in memory together for
    /// longer than a digest takes, and the time of a comparison reveals nothing about them.
    package func releases(sharing secret: Secret, besides id: KeyID) throws(OperationalError) -> [KeyID] {
        let comparison = SecretComparison()
        let wanted = comparison.digest(of: secret)
        var sharing: [KeyID] = []
        for release in try store.snapshot().releases where release.id != id {
            let keys = [try key(of: release), try nextKey(of: release)].compactMap(\.self)
            let isShared = keys.contains { key in
                guard key.publicKey == nil else { return false }
                return comparison.digest(of: key.secret).span.matches(wanted.span)
            }
            if isShared { sharing.append(release.id) }
        }
        return sharing.sorted { $0.description < $1.description }
    }
}

/// Digests that allow comparing secrets and reveal nothing else about them.
private struct SecretComparison {
    private let mac = Secret(random: 32).withExposedBytes { HMACSHA256(key: $0) }

    func digest(of secret: Secret) -> Digest32 { secret.withExposedBytes { mac.authenticate($0) } }
}
