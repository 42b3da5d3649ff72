import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

/// Signs in a device's name. Where the device's key is bound to presence, whoever has it released hands one of these along, and lets
/// go of it afterwards.
package protocol DeviceSigner: Sendable {
    /// The public half.
    var point: P256Point { get }

    /// `r ‖ s`, 64 bytes: ECDSA on P-256 with SHA-256.
    func sign(_ text: [UInt8]) throws(ClientProblem) -> [UInt8]
}

extension DeviceSigner {
    /// Adds the device's signature to a draft that the session `keyID` has signed.
    func sign(_ draft: inout Draft, keyID: KeyID, at time: Int64) throws(ClientProblem) {
        var problem: ClientProblem?
        do {
            try MessageSignatures().addDeviceSignature(to: &draft, keyID: keyID, at: time) { (text) throws(Refusal) in
                do throws(ClientProblem) {
                    return try sign(text)
                } catch {
                    problem = error
                    throw Refusal(.malformed, "the device's key does not sign")
                }
            }
        } catch {
            throw problem ?? .incomplete("the request cannot be signed: \(error.detail)")
        }
    }
}

/// A signing key that is open, in software or in hardware.
package struct DeviceSigningKey: DeviceSigner {
    private let key: any DeviceSigningKeyHandle

    package init(_ key: any DeviceSigningKeyHandle) { self.key = key }

    package var point: P256Point { key.point }

    package func sign(_ text: [UInt8]) throws(ClientProblem) -> [UInt8] {
        do throws(DeviceKeyError) {
            return try key.sign(text)
        } catch {
            throw ClientProblem(error)
        }
    }
}

/// Keeps a device's signing key so that it comes out only with somebody present.
package protocol DeviceKeyBinder: Sendable {
    /// `key` is as its back end wrapped it (``DeviceKeys/storage``). Durable once it returns; throws
    /// ``ClientProblem/notPresent(_:)`` where nobody showed that he is there. `name` is ``DeviceKeys/name``,
    /// by which it is asked for again.
    nonisolated(nonsending) func bind(_ key: Secret, named name: String) async throws(ClientProblem)
}

/// Where a device's signing key is kept.
package enum SigningKeyPlace: Sendable {
    /// In the vault's item of device keys: whoever opens the vault, on this device where it is in hardware, can sign.
    case vault
    /// There alone. What needs it, a refresh above all, needs somebody present.
    case boundToPresence(any DeviceKeyBinder)
}
