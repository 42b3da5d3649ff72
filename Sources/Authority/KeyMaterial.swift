import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What a release's row seals: a shared secret, or a public key with its algorithm.
///
/// Which of the two is told by the seal, which binds the kind: a public key never opens as a secret, whoever writes in the
/// database. A public key is sealed although it is public, so that nobody without the master key can put in his own.
extension Deployment {
    func seal(_ draft: ReleaseDraft, for release: Release) -> [UInt8] {
        guard let publicKey = draft.publicKey else { return seal(draft.secret, as: .secret(of: release)) }
        return seal(Secret(copying: publicKey.material.span), as: .publicKey(of: release))
    }

    /// What signatures of a release verify under.
    package func key(of release: Release) throws(Fault) -> SigningKey {
        if let sealed = open(release.sealedSecret, as: .publicKey(of: release)) {
            guard let key = sealed.withExposedBytes({ PublicKey(material: $0) }) else {
                throw Fault(.failed, "release \(release.id): its public key cannot be read by this build")
            }
            return SigningKey(key)
        }
        return SigningKey(try secret(of: release))
    }
}

extension PublicKey {
    /// The algorithm's name, a zero, and the SubjectPublicKeyInfo.
    fileprivate var material: [UInt8] { Array(algorithm.rawValue.utf8) + [0] + der }

    fileprivate convenience init?(material: Span<UInt8>) {
        var end = 0
        while end < material.count, material[end] != 0 { end += 1 }
        guard end < material.count, let algorithm = KeyAlgorithm(material.extracting(0..<end)) else { return nil }
        do {
            try self.init(der: material.extracting((end + 1)...), algorithm: algorithm)
        } catch {
            return nil
        }
    }
}

extension SealBinding {
    static func publicKey(of release: Release) -> SealBinding {
        SealBinding(kind: "release-public-key", app: release.app.description, row: release.id.description)
    }
}
