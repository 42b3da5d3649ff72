#if os(Linux) && !TPM
    import CountersignSeal

    /// The TPM's guard in a build without the trait: it neither seals nor opens.
    package struct TPMGuard: KeyGuard {
        package let kind = KeyGuardKind.tpm

        package init(device: String = "") {}

        /// None, as on a machine without a TPM.
        static var ofThisMachine: TPMGuard? { nil }

        package func seal(_ key: Secret) throws(VaultError) -> [UInt8] { throw PackageTrait.tpm.error }

        package func open(_ sealed: [UInt8]) throws(VaultError) -> Secret { throw PackageTrait.tpm.error }
    }

    /// The TPM's keys in a build without the trait, for an app that names a TPM. The keys are unavailable,
    /// not lost: a build with the trait opens them again.
    package struct TPMKeys: DeviceKeyBackEnd {
        package let storage = KeyStorage.tpm

        package init(device: String) {}

        package func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> WrappedKey {
            throw TPMKeys.error
        }

        package func signingKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceSigningKeyHandle {
            throw TPMKeys.error
        }

        package func agreementKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceAgreementKeyHandle {
            throw TPMKeys.error
        }

        private static var error: DeviceKeyError { .unavailable(PackageTrait.tpm.absence) }
    }

    extension DeviceKeyHardware {
        /// None, as on a machine without a TPM.
        package static var ofThisMachine: (any DeviceKeyBackEnd)? { nil }
    }
#endif
