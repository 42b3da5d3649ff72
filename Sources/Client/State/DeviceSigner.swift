import CountersignSchemes
import CountersignSeal
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
        do {
            try MessageSignatures().addDeviceSignature(to: &draft, keyID: keyID, at: time) { (text) throws(Refusal) in
                do {
                    return try sign(text)
                } catch {
                    throw Refusal(.malformed, "the device's key does not sign")
                }
            }
        } catch {
            throw .incomplete("the request cannot be signed: \(error.detail)")
        }
    }
}

/// A signing key in memory.
package final class DeviceSigningKey: DeviceSigner {
    package let point: P256Point
    private let key: PrivateKey

    /// What ``DeviceKeyBinder`` or the vault was given.
    package init(pkcs8: Secret) throws(ClientProblem) {
        do {
            key = try PrivateKey(p256PKCS8: pkcs8)
        } catch {
            throw .machine("the device's keys: expected \(error.expected)")
        }
        guard let point = P256Point(subjectPublicKeyInfo: key.publicKey.der) else {
            throw .machine("the device's keys: expected a key on P-256")
        }
        self.point = point
    }

    package func sign(_ text: [UInt8]) throws(ClientProblem) -> [UInt8] {
        guard let signature = key.sign(text.span) else { throw .machine("the device's key does not sign") }
        return signature
    }
}

/// Keeps a device's signing key so that it comes out only with somebody present.
package protocol DeviceKeyBinder: Sendable {
    /// `key` is PKCS #8. Durable once it returns; throws ``ClientProblem/notPresent(_:)`` where nobody showed that he is there.
    /// `name` is ``DeviceKeys/name``, by which it is asked for again.
    nonisolated(nonsending) func bind(_ key: Secret, named name: String) async throws(ClientProblem)
}

/// Where a device's signing key is kept.
package enum SigningKeyPlace: Sendable {
    /// With the rest of the state: whoever opens the vault can sign.
    case vault
    /// There alone. What needs it, a refresh above all, needs somebody present.
    case boundToPresence(any DeviceKeyBinder)
}
