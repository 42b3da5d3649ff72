import CountersignHandshake
import CountersignSeal
import CountersignWire

/// A device's two key pairs, made once and kept for all of its sessions: one signs, the other agrees.
package final class DeviceKeys: Sendable {
    /// The half that signs.
    enum Signing: Sendable {
        /// Here, and as PKCS #8 for the vault.
        case held(DeviceSigningKey, Secret)
        /// Elsewhere, where somebody has to be present. This is its public half.
        case bound(P256Point)
    }

    let signing: Signing
    let agreement: AgreementKey
    /// PKCS #8, for the vault.
    let agreementPKCS8: Secret

    /// New ones, both held.
    convenience init() throws(ClientProblem) {
        let key = try DeviceKeys.newKey()
        try self.init(signing: .held(DeviceSigningKey(pkcs8: key), key), agreement: DeviceKeys.newKey())
    }

    init(signing: Signing, agreement: Secret) throws(ClientProblem) {
        self.signing = signing
        agreementPKCS8 = agreement
        do {
            self.agreement = try AgreementKey(pkcs8: agreement)
        } catch {
            throw .machine("the device's keys: expected \(error.expected)")
        }
    }

    private static func newKey() throws(ClientProblem) -> Secret {
        guard let key = try? AgreementKey().pkcs8 else { throw .machine("no P-256 key can be made") }
        return key
    }

    var signingPoint: P256Point {
        switch signing {
        case .held(let key, _): key.point
        case .bound(let point): point
        }
    }

    /// Names the signing key wherever it is kept: 32 hexadecimal digits of its public half's SHA-256.
    package var name: String {
        let digest = SHA256.digest(signingPoint.bytes.span)
        return Hex.encode(digest.span.extracting(0..<16))
    }

    /// Whether a signature needs somebody present.
    package var isBoundToPresence: Bool { if case .bound = signing { true } else { false } }

    /// The device as logins present it.
    func device(_ kind: Device.Class, _ name: Device.Name) -> Device {
        Device(signingKey: signingPoint, agreementKey: agreement.publicPoint, kind: kind, name: name)
    }

    /// The same, whose signing key is no longer here.
    func withoutSigningKey() throws(ClientProblem) -> DeviceKeys {
        try DeviceKeys(signing: .bound(signingPoint), agreement: agreementPKCS8)
    }
}

extension Surroundings {
    /// Who signs for the device. Throws ``ClientProblem/presenceNeeded`` where that takes somebody who is not there, and says so.
    func signer(_ keys: DeviceKeys) throws(ClientProblem) -> any DeviceSigner {
        switch keys.signing {
        case .held(let key, _): return key
        case .bound(let point):
            if let signer, signer.point == point { return signer }
            keeper.announce(.locked(.presence))
            throw .presenceNeeded
        }
    }
}
