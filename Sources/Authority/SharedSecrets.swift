import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Deployment {
    /// The releases, other than `id`, that hold `secret` as their key or as their next one. Teams share one
    /// over versions, which works, and lets a client that has one of these versions sign for all of them.
    ///
    /// Compared are digests under a key that is made here and forgotten, so that no two secrets lie in memory
    /// side by side for longer than a digest takes, and the time of a comparison tells nothing of either.
    package func releases(sharing secret: Secret, besides id: KeyID) throws(Fault) -> [KeyID] {
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

/// Digests by which secrets can be compared, and nothing else learned of them.
private struct SecretComparison {
    private let mac = Secret(random: 32).withExposedBytes { HMACSHA256(key: $0) }

    func digest(of secret: Secret) -> Digest32 { secret.withExposedBytes { mac.authenticate($0) } }
}
