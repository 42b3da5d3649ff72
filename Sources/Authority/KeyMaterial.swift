import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A release's key: a secret that its callers share, or the public key of a pair.
package enum KeyMaterial: Sendable {
    case secret(Secret)
    case publicKey(PublicKey)
}

/// The sealed key of a release's row: a shared secret, or a public key with its algorithm; as the current
/// or the next key.
///
/// The seal binds the kind: a public key never opens as a secret, nor the next key as the current one, even
/// if the database was altered. A public key is sealed although it is public, so that a party without the
/// master key cannot insert its own.
extension Deployment {
    func seal(_ draft: ReleaseDraft, for release: Release) -> [UInt8] {
        seal(draft.publicKey.map { .publicKey($0) } ?? .secret(draft.secret), as: .current, of: release)
    }

    func seal(_ material: KeyMaterial, as edition: AppRelease.Edition, of release: Release) -> [UInt8] {
        switch material {
        case .secret(let secret): seal(secret, as: .secret(of: release, edition: edition))
        case .publicKey(let key):
            seal(Secret(copying: key.material.span), as: .publicKey(of: release, edition: edition))
        }
    }

    /// The key that verifies signatures of a release.
    package func key(of release: Release) throws(OperationalError) -> SigningKey {
        SigningKey(try open(release.sealedSecret, as: .current, of: release))
    }

    /// The same for the next key; nil if the release has no next key.
    package func nextKey(of release: Release) throws(OperationalError) -> SigningKey? {
        guard let sealed = release.sealedNextSecret else { return nil }
        return SigningKey(try open(sealed, as: .next, of: release))
    }

    func open(_ sealed: [UInt8], as edition: AppRelease.Edition, of release: Release) throws(OperationalError)
        -> KeyMaterial
    {
        if let opened = open(sealed, as: .publicKey(of: release, edition: edition)) {
            guard let key = opened.withExposedBytes({ PublicKey(material: $0) }) else {
                throw OperationalError(
                    .failed, message: "release \(release.id): its public key cannot be read by this build")
            }
            return .publicKey(key)
        }
        if let secret = open(sealed, as: .secret(of: release, edition: edition)) { return .secret(secret) }
        throw OperationalError(
            .failed,
            message: "release \(release.id): its sealed key does not open; the row was altered or moved")
    }
}

extension SigningKey {
    convenience init(_ material: KeyMaterial) {
        switch material {
        case .secret(let secret): self.init(secret)
        case .publicKey(let key): self.init(key)
        }
    }
}

extension PublicKey {
    /// The algorithm's name, a zero byte, and the SubjectPublicKeyInfo.
    fileprivate var material: [UInt8] { Array(algorithm.rawValue.utf8) + [0] + der }

    fileprivate convenience init?(material: Span<UInt8>) {
        var end = 0
        while end < material.count, material[end] != 0 { end += 1 }
        guard end < material.count, let algorithm = KeyAlgorithm(material.extracting(0..<end)) else {
            return nil
        }
        do {
            try self.init(der: material.extracting((end + 1)...), algorithm: algorithm)
        } catch {
            return nil
        }
    }
}

extension SealBinding {
    fileprivate static func secret(of release: Release, edition: AppRelease.Edition) -> SealBinding {
        keys(of: release.id, app: release.app.description, edition: edition)[0]
    }

    fileprivate static func publicKey(of release: Release, edition: AppRelease.Edition) -> SealBinding {
        keys(of: release.id, app: release.app.description, edition: edition)[1]
    }

    /// Of a secret, and of a public key.
    static func keys(of id: KeyID, app: String, edition: AppRelease.Edition) -> [SealBinding] {
        let kinds =
            edition == .current
            ? ["release-secret", "release-public-key"] : ["release-next-secret", "release-next-public-key"]
        return kinds.map { SealBinding(kind: $0, app: app, row: id.description) }
    }
}
