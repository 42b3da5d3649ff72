import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

/// Signs in a device's name. If the device's key is bound to presence, the code that has it released passes
/// such a signer along and drops it afterwards.
package protocol DeviceSigner: Sendable {
    /// The public half.
    var point: P256Point { get }

    /// `r ‖ s`, 64 bytes: ECDSA on P-256 with SHA-256.
    func sign(_ text: [UInt8]) throws(ClientOperationError) -> [UInt8]
}

extension DeviceSigner {
    /// Adds the device's signature to a draft that the session `keyID` has signed.
    func sign(_ draft: inout Draft, keyID: KeyID, at time: Int64) throws(ClientOperationError) {
        var problem: ClientOperationError?
        do {
            try MessageSignatures().addDeviceSignature(to: &draft, keyID: keyID, at: time) {
                (text) throws(Refusal) in
                do throws(ClientOperationError) {
                    return try sign(text)
                } catch {
                    problem = error
                    throw Refusal(.malformed, detail: "the device's key does not sign")
                }
            }
        } catch {
            throw problem ?? .incomplete("the request cannot be signed: \(error.detail)")
        }
    }
}

/// An open signing key, in software or in hardware.
package struct DeviceSigningKey: DeviceSigner {
    private let key: any DeviceSigningKeyHandle

    package init(_ key: any DeviceSigningKeyHandle) { self.key = key }

    package var point: P256Point { key.point }

    package func sign(_ text: [UInt8]) throws(ClientOperationError) -> [UInt8] {
        do throws(DeviceKeyError) {
            return try key.sign(text)
        } catch {
            throw ClientOperationError(error)
        }
    }
}

/// Stores a device's signing key so that it is released only when the user is present.
package protocol DeviceKeyBinder: Sendable {
    /// `key` is wrapped by its back end (``DeviceKeys/storage``). Durable once it returns; throws
    /// ``ClientOperationError/notPresent(_:)`` if no user confirmed their presence. `name` is
    /// ``DeviceKeys/name``, under which the key is requested again.
    func bind(_ key: Secret, named name: String) async throws(ClientOperationError)
}

/// Where a device's signing key is stored.
package enum SigningKeyPlace: Sendable {
    /// In the vault's item of device keys: a process that opens the vault, on this device if the key is in
    /// hardware, can sign.
    case vault
    /// Bound to presence alone. An operation that needs the key, above all a refresh, needs the user's
    /// presence.
    case boundToPresence(any DeviceKeyBinder)
}

/// Uses of the device's keys. If a session's keys are lost, it cannot be renewed, so these functions end it
/// here.
extension ClientEnvironment {
    /// The signer for the device. If the key needs presence and the caller has none, throws
    /// ``ClientOperationError/presenceNeeded`` and announces the locked status.
    func signer(_ keys: DeviceKeys) throws(ClientOperationError) -> any DeviceSigner {
        guard keys.isBoundToPresence else {
            return KeptKeySigner(keys: keys, environment: self, present: nil)
        }
        guard let signer, signer.point == keys.signingPoint else {
            keeper.announce(.locked(.presence))
            throw .presenceNeeded
        }
        return KeptKeySigner(keys: keys, environment: self, present: signer)
    }

    /// The shared secret of the device's agreement key and a public key of the server's.
    func sharedSecret(with point: P256Point, of keys: DeviceKeys) throws(ClientOperationError) -> Secret {
        try endingSession(ofLost: keys) { () throws(ClientOperationError) in
            let key = try keeper.deviceKeys.agreement(keys)
            do throws(DeviceKeyError) {
                return try key.sharedSecret(with: point)
            } catch {
                throw ClientOperationError(error)
            }
        }
    }

    /// The signing key that presence released, as it was bound.
    package func open(_ wrapped: Secret, of keys: DeviceKeys) throws(ClientOperationError) -> DeviceSigningKey
    {
        try endingSession(ofLost: keys) { () throws(ClientOperationError) in
            DeviceSigningKey(try keeper.deviceKeys.open(wrapped, of: keys))
        }
    }

    /// Runs `body`; if it finds the keys lost, ends their session on this device. At the server the session
    /// lives until it is ended there or has been idle for too long.
    fileprivate func endingSession<Value>(
        ofLost keys: DeviceKeys, body: () throws(ClientOperationError) -> Value
    ) throws(ClientOperationError) -> Value {
        do throws(ClientOperationError) {
            return try body()
        } catch {
            guard case .deviceKeyLost = error else { throw error }
            let ending = SessionEndRecord(reason: SessionEndRecord.deviceKeyLost, at: try now(), by: nil)
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
    let environment: ClientEnvironment
    /// The signer for keys that are bound to presence.
    let present: (any DeviceSigner)?

    var point: P256Point { keys.signingPoint }

    func sign(_ text: [UInt8]) throws(ClientOperationError) -> [UInt8] {
        try environment.endingSession(ofLost: keys) { () throws(ClientOperationError) in
            if let present { return try present.sign(text) }
            return try DeviceSigningKey(environment.keeper.deviceKeys.signing(keys)).sign(text)
        }
    }
}
