#if canImport(Security)
    import CountersignSeal
    import Security

    /// Device keys in the Secure Enclave. Each use opens the key anew from its data representation.
    package struct SecureEnclaveKeys: DeviceKeyBackEnd {
        package let storage = KeyStorage.secureEnclave

        /// Nil on a device without one.
        package static var ofThisMachine: SecureEnclaveKeys? {
            EnclaveKey.isAvailable ? SecureEnclaveKeys() : nil
        }

        package func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> WrappedKey {
            let made = try DeviceKeyError.translating { () throws(EnclaveError) in
                switch use {
                case .signing: try EnclaveKey.makeSigningKey()
                case .agreement: try EnclaveKey.makeAgreementKey()
                }
            }
            return WrappedKey(point: made.point, wrapped: made.wrapped)
        }

        package func signingKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceSigningKeyHandle {
            let point = try DeviceKeyError.translating { () throws(EnclaveError) in
                try EnclaveKey.point(ofSigningKey: wrapped)
            }
            return SigningHandle(point: point, wrapped: wrapped)
        }

        package func agreementKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceAgreementKeyHandle {
            let point = try DeviceKeyError.translating { () throws(EnclaveError) in
                try EnclaveKey.point(ofAgreementKey: wrapped)
            }
            return AgreementHandle(point: point, wrapped: wrapped)
        }

        private struct SigningHandle: DeviceSigningKeyHandle {
            let point: P256Point
            let wrapped: Secret

            func verifyUsable() throws(DeviceKeyError) {
                _ = try DeviceKeyError.translating { () throws(EnclaveError) in
                    try EnclaveKey.point(ofSigningKey: wrapped)
                }
            }

            func sign(_ message: [UInt8]) throws(DeviceKeyError) -> [UInt8] {
                try DeviceKeyError.translating { () throws(EnclaveError) in
                    try EnclaveKey.sign(message, with: wrapped)
                }
            }
        }

        private struct AgreementHandle: DeviceAgreementKeyHandle {
            let point: P256Point
            let wrapped: Secret

            func verifyUsable() throws(DeviceKeyError) {
                _ = try DeviceKeyError.translating { () throws(EnclaveError) in
                    try EnclaveKey.point(ofAgreementKey: wrapped)
                }
            }

            func sharedSecret(with point: P256Point) throws(DeviceKeyError) -> Secret {
                guard point.isOnCurve else { throw .badPoint }
                return try DeviceKeyError.translating { () throws(EnclaveError) in
                    try EnclaveKey.sharedSecret(with: point, of: wrapped)
                }
            }
        }
    }
#endif
