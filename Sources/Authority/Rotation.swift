import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Two keys under one id: while both are in the field, both verify; then the next one becomes the only one. Each step
/// is durable, and seen by a running server, once it returns.
extension Deployment {
    package func addNextKey(_ secret: Secret, to id: KeyID) throws(Fault) {
        let release = try release(id)
        guard ConstantTime.equals(try self.secret(of: release), secret) == .different else {
            throw Fault(.failed, "release \(id): that is its key already; a next key must be another")
        }
        guard release.sealedNextSecret == nil,
            try store.insertNext(seal(secret, as: .nextSecret(of: release)), of: id) == .yes
        else {
            throw Fault(.failed, "release \(id): it has a next key; --promote makes it the key, --cancel drops it")
        }
        generation.advance()
    }

    /// From now on only the next key verifies.
    package func promoteNextKey(of id: KeyID) throws(Fault) {
        let release = try release(id)
        guard let sealed = release.sealedNextSecret, let secret = try nextSecret(of: release) else {
            throw Deployment.noNextKey(id)
        }
        guard try store.promote(sealed, as: seal(secret, as: .secret(of: release)), of: id) == .yes else {
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

extension ConstantTime {
    fileprivate static func equals(_ left: Secret, _ right: Secret) -> Verdict {
        left.withExposedBytes { left in right.withExposedBytes { equals(left, $0) } }
    }
}
