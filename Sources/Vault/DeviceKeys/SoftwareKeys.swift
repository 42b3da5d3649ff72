import CountersignSeal

/// Device keys in the program's memory, stored as PKCS #8: for devices without hardware, and where software
/// is demanded.
package struct SoftwareKeys: DeviceKeyBackEnd {
    package let storage = KeyStorage.software

    package init() {}

    package func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> WrappedKey {
        guard let key = try? AgreementKey(), let pkcs8 = key.pkcs8 else {
            throw .unavailable("no P-256 key can be made")
        }
        return WrappedKey(point: key.publicPoint, wrapped: pkcs8)
    }

    package func signingKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceSigningKeyHandle {
        guard let key = try? PrivateKey(p256PKCS8: wrapped),
            let point = P256Point(subjectPublicKeyInfo: key.publicKey.der)
        else { throw SoftwareKeys.unreadable }
        return SigningHandle(point: point, key: key)
    }

    package func agreementKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceAgreementKeyHandle {
        guard let key = try? AgreementKey(pkcs8: wrapped) else { throw SoftwareKeys.unreadable }
        return AgreementHandle(key: key)
    }

    private static let unreadable = DeviceKeyError.lost("the device's key: expected a P-256 key as PKCS #8")

    private struct SigningHandle: DeviceSigningKeyHandle {
        let point: P256Point
        let key: PrivateKey

        /// PKCS #8 has both halves, and they may differ where it was altered.
        func verifyUsable() throws(DeviceKeyError) {
            let probe = Array("countersign/1 probe".utf8)
            let signature = try sign(probe)
            guard point.verify(signature.span, of: probe.span) == .equal else {
                throw SoftwareKeys.unreadable
            }
        }

        func sign(_ message: [UInt8]) throws(DeviceKeyError) -> [UInt8] {
            guard let signature = key.sign(message.span) else {
                throw .unavailable("the device's key does not sign")
            }
            return signature
        }
    }

    private struct AgreementHandle: DeviceAgreementKeyHandle {
        let key: AgreementKey
        var point: P256Point { key.publicPoint }

        func verifyUsable() {}

        func sharedSecret(with point: P256Point) throws(DeviceKeyError) -> Secret {
            guard let secret = try? key.sharedSecret(with: point) else { throw .badPoint }
            return secret
        }
    }
}
