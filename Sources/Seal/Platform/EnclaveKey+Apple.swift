#if canImport(CryptoKit)
    import CryptoKit
    import Foundation
    import Security

    /// P-256 key pairs in the Secure Enclave. A key is stored as its data representation, which only the
    /// Enclave that made it can open. Source: Apple's documentation of `SecureEnclave.P256`.
    package enum EnclaveKey {
        /// Whether this device has a Secure Enclave that the process may use.
        package static var isAvailable: Bool { SecureEnclave.isAvailable }

        package static func makeSigningKey() throws(EnclaveError) -> (point: P256Point, wrapped: Secret) {
            let control = try access()
            return try attempt {
                let key = try SecureEnclave.P256.Signing.PrivateKey(accessControl: control)
                return (try point(key.publicKey.x963Representation), secret(key.dataRepresentation))
            }
        }

        package static func makeAgreementKey() throws(EnclaveError) -> (point: P256Point, wrapped: Secret) {
            let control = try access()
            return try attempt {
                let key = try SecureEnclave.P256.KeyAgreement.PrivateKey(accessControl: control)
                return (try point(key.publicKey.x963Representation), secret(key.dataRepresentation))
            }
        }

        package static func point(ofSigningKey wrapped: Secret) throws(EnclaveError) -> P256Point {
            try attempt { try point(signingKey(wrapped).publicKey.x963Representation) }
        }

        package static func point(ofAgreementKey wrapped: Secret) throws(EnclaveError) -> P256Point {
            try attempt { try point(agreementKey(wrapped).publicKey.x963Representation) }
        }

        /// `r ‖ s`, 64 bytes: ECDSA on P-256 with SHA-256.
        package static func sign(_ message: [UInt8], with wrapped: Secret) throws(EnclaveError) -> [UInt8] {
            try attempt { Array(try signingKey(wrapped).signature(for: message).rawRepresentation) }
        }

        /// The x coordinate of the product, 32 bytes. The caller has checked that `point` is on the curve.
        package static func sharedSecret(
            with point: P256Point, of wrapped: Secret
        ) throws(EnclaveError) -> Secret {
            try attempt {
                let peer = try P256.KeyAgreement.PublicKey(x963Representation: point.bytes)
                let product = try agreementKey(wrapped).sharedSecretFromKeyAgreement(with: peer)
                return product.withUnsafeBytes { Secret(copying: Span(_unsafeBytes: $0)) }
            }
        }

        private static func signingKey(_ wrapped: Secret) throws -> SecureEnclave.P256.Signing.PrivateKey {
            try SecureEnclave.P256.Signing.PrivateKey(dataRepresentation: data(wrapped))
        }

        private static func agreementKey(_ wrapped: Secret) throws
            -> SecureEnclave.P256.KeyAgreement.PrivateKey
        {
            try SecureEnclave.P256.KeyAgreement.PrivateKey(dataRepresentation: data(wrapped))
        }

        /// The same accessibility as the vault's items, so that a refresh in the background can use both or
        /// neither.
        private static func access() throws(EnclaveError) -> SecAccessControl {
            let control = SecAccessControlCreateWithFlags(
                nil, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, .privateKeyUsage, nil)
            guard let control else { throw EnclaveError(domain: "Security", code: 0) }
            return control
        }

        private static func point(_ bytes: Data) throws -> P256Point {
            guard let point = P256Point(Array(bytes)) else {
                throw EnclaveError(domain: "CryptoKit", code: 0)
            }
            return point
        }

        private static func secret(_ data: Data) -> Secret {
            data.withUnsafeBytes { Secret(copying: Span(_unsafeBytes: $0)) }
        }

        private static func data(_ secret: Secret) -> Data {
            secret.withExposedBytes { span in span.withUnsafeBytes { Data($0) } }
        }

        private static func attempt<Value>(_ body: () throws -> Value) throws(EnclaveError) -> Value {
            do {
                return try body()
            } catch let failure as EnclaveError {
                throw failure
            } catch {
                let error = error as NSError
                throw EnclaveError(domain: error.domain, code: error.code)
            }
        }
    }
#endif
