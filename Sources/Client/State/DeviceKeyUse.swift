import CountersignHandshake
import CountersignSeal
import CountersignVault
import CountersignWire

/// What the device's keys are used for, and what becomes of a session whose keys are lost: it cannot be
/// renewed, so it ends here.
extension Surroundings {
    /// Who signs for the device. Throws ``ClientProblem/presenceNeeded`` where that takes somebody who is not
    /// there, and says so.
    func signer(_ keys: DeviceKeys) throws(ClientProblem) -> any DeviceSigner {
        guard keys.isBoundToPresence else {
            return KeptKeySigner(keys: keys, surroundings: self, present: nil)
        }
        guard let signer, signer.point == keys.signingPoint else {
            keeper.announce(.locked(.presence))
            throw .presenceNeeded
        }
        return KeptKeySigner(keys: keys, surroundings: self, present: signer)
    }

    /// What the device's agreement key and a public key of the server's have in common.
    func sharedSecret(with point: P256Point, of keys: DeviceKeys) throws(ClientProblem) -> Secret {
        try endingSession(ofLost: keys) { () throws(ClientProblem) in
            let key = try keeper.deviceKeys.agreement(keys)
            do throws(DeviceKeyError) {
                return try key.sharedSecret(with: point)
            } catch {
                throw ClientProblem(error)
            }
        }
    }

    /// The signing key that presence has let out, as it was bound.
    package func open(_ wrapped: Secret, of keys: DeviceKeys) throws(ClientProblem) -> DeviceSigningKey {
        try endingSession(ofLost: keys) { () throws(ClientProblem) in
            DeviceSigningKey(try keeper.deviceKeys.open(wrapped, of: keys))
        }
    }

    /// `body`, and where it finds the keys lost, the end of their session on this device. At the server it
    /// lives until it is ended there, or idle for too long.
    fileprivate func endingSession<Value>(
        ofLost keys: DeviceKeys, _ body: () throws(ClientProblem) -> Value
    ) throws(ClientProblem) -> Value {
        do throws(ClientProblem) {
            return try body()
        } catch {
            guard case .deviceKeyLost = error else { throw error }
            let ending = Ending(reason: Ending.deviceKeyLost, at: try now(), by: nil)
            try keeper.change { state in
                guard state.keys == keys, case .device? = state.login?.session else { return .keep(()) }
                state.end(ending)
                return .write(())
            }
            throw error
        }
    }
}

/// Signs with the keys of the state. Opens them at the first signature.
private struct KeptKeySigner: DeviceSigner {
    let keys: DeviceKeys
    let surroundings: Surroundings
    /// Of keys that are bound to presence.
    let present: (any DeviceSigner)?

    var point: P256Point { keys.signingPoint }

    func sign(_ text: [UInt8]) throws(ClientProblem) -> [UInt8] {
        try surroundings.endingSession(ofLost: keys) { () throws(ClientProblem) in
            if let present { return try present.sign(text) }
            return try DeviceSigningKey(surroundings.keeper.deviceKeys.signing(keys)).sign(text)
        }
    }
}
