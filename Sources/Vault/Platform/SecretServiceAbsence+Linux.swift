#if os(Linux) && !SecretService
    import CountersignSeal

    /// The Secret Service in a build without the trait: the platform's vault passes over it as where no
    /// service answers, and a vault that was kept there cannot be told.
    package struct SecretServiceStore: ItemStore {
        package init() {}

        package func find(_ name: ItemName) -> VaultReadResult<Secret> {
            VaultReadResult(PackageTrait.secretService.error)
        }

        package func names() throws(VaultError) -> [ItemName] { throw PackageTrait.secretService.error }

        package func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
            throw PackageTrait.secretService.error
        }

        package func remove(_ name: ItemName) throws(VaultError) { throw PackageTrait.secretService.error }

        package func unavailabilityReason() -> String? { PackageTrait.secretService.absence }
    }
#endif
