import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A device's two key pairs, made once and kept for all of its sessions: one signs, the other agrees.
package final class DeviceKeys: Sendable {
    /// Both as PKCS #8, for the vault.
    let signingPKCS8: Secret
    let agreementPKCS8: Secret
    let agreement: AgreementKey
    private let signing: PrivateKey
    private let signingPoint: P256Point

    /// New ones.
    convenience init() throws(ClientProblem) {
        try self.init(signing: DeviceKeys.newKey(), agreement: DeviceKeys.newKey())
    }

    private static func newKey() throws(ClientProblem) -> Secret {
        guard let key = try? AgreementKey().pkcs8 else { throw .machine("no P-256 key can be made") }
        return key
    }

    /// From the vault.
    init(signing: Secret, agreement: Secret) throws(ClientProblem) {
        signingPKCS8 = signing
        agreementPKCS8 = agreement
        do {
            self.signing = try PrivateKey(p256PKCS8: signing)
            self.agreement = try AgreementKey(pkcs8: agreement)
        } catch {
            throw .machine("the device's keys: expected \(error.expected)")
        }
        guard let point = P256Point(subjectPublicKeyInfo: self.signing.publicKey.der) else {
            throw .machine("the device's keys: expected a key on P-256")
        }
        signingPoint = point
    }

    /// The device as logins present it.
    func device(_ kind: Device.Class, _ name: Device.Name) -> Device {
        Device(signingKey: signingPoint, agreementKey: agreement.publicPoint, kind: kind, name: name)
    }

    /// `r ‖ s`, 64 bytes.
    func sign(_ transcript: [UInt8]) throws(ClientProblem) -> [UInt8] {
        guard let signature = signing.sign(transcript.span) else { throw .machine("the device's key does not sign") }
        return signature
    }

    /// Adds the device's signature to a draft that the session `keyID` has signed.
    func sign(_ draft: inout Draft, keyID: KeyID, at time: Int64) throws(ClientProblem) {
        do {
            try MessageSignatures().addDeviceSignature(to: &draft, keyID: keyID, at: time) { (text) throws(Refusal) in
                guard let signature = signing.sign(text.span) else {
                    throw Refusal(.malformed, "the device's key does not sign")
                }
                return signature
            }
        } catch {
            throw .incomplete("the request cannot be signed: \(error.detail)")
        }
    }
}
