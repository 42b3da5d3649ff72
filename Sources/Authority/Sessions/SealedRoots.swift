import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// Roots of sessions under the master key, each bound to its session and epoch: a row that was moved, or put back to an
/// earlier epoch, does not open.
extension Deployment {
    func seal(_ root: SessionRoot, of session: SessionID, in app: AppName, epoch: UInt32) -> [UInt8] {
        #if SABOTAGE
            if Sabotage.isOn(.keptInClear) {
                return root.secret.withExposedBytes { $0.withUnsafeBufferPointer { Array($0) } }
            }
        #endif
        return seal(root.secret, as: .root(of: session, in: app, epoch: epoch))
    }

    /// Throws where it was not sealed as that: for this session, and for no other, nothing is served.
    func root(_ sealed: [UInt8], of session: SessionID, in app: AppName, epoch: UInt32) throws(Fault) -> SessionRoot {
        #if SABOTAGE
            if Sabotage.isOn(.keptInClear), sealed.count == SessionRoot.count {
                return SessionRoot(secret: Secret(copying: sealed.span))
            }
        #endif
        guard let secret = open(sealed, as: .root(of: session, in: app, epoch: epoch)),
            secret.count == SessionRoot.count
        else {
            throw Fault(.failed, "session \(session): its sealed root does not open; the row was altered or moved")
        }
        return SessionRoot(secret: secret)
    }
}

extension SealBinding {
    fileprivate static func root(of session: SessionID, in app: AppName, epoch: UInt32) -> SealBinding {
        SealBinding(kind: "session-root", app: app.description, row: session.description, epoch: UInt64(epoch))
    }
}
