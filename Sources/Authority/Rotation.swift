import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Two keys under one id: while both are in the field, both verify; then the next one becomes the only one. Each step
/// is durable, and seen by a running server, once it returns.
extension Deployment {
    package func addNextKey(_ material: KeyMaterial, to id: KeyID) throws(Fault) {
        let release = try release(id)
        if case .publicKey = material, release.scheme != .messageSignatures {
            throw Fault(.usage, "a public key is for message-signatures; \(release.scheme.rawValue) has shared secrets")
        }
        guard try !open(release.sealedSecret, as: .current, of: release).isSame(as: material) else {
            throw Fault(.failed, "release \(id): that is its key already; a next key must be another")
        }
        guard release.sealedNextSecret == nil,
            try store.insertNext(seal(material, as: .next, of: release), of: id) == .yes
        else {
            throw Fault(.failed, "release \(id): it has a next key; --promote makes it the key, --cancel drops it")
        }
        generation.advance()
    }

    /// From now on only the next key verifies.
    package func promoteNextKey(of id: KeyID) throws(Fault) {
        let release = try release(id)
        guard let sealed = release.sealedNextSecret else { throw Deployment.noNextKey(id) }
        let material = try open(sealed, as: .next, of: release)
        guard try store.promote(sealed, as: seal(material, as: .current, of: release), of: id) == .yes else {
            throw Fault(.failed, "release \(id): its next key was changed meanwhile; nothing was done")
        }
        generation.advance()
    }

    /// From now on the next key no longer verifies.
    package func dropNextKey(of id: KeyID) throws(Fault) {
        _ = try release(id)
        guard try store.removeNext(of: id) == .yes else { throw Deployment.noNextKey(id) }
        generation.advance()
    }

    private static func noNextKey(_ id: KeyID) -> Fault {
        Fault(.failed, "release \(id): it has no next key; `countersign release rotate \(id)` makes one")
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
