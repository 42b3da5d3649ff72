#if os(Linux) && !Presence
    import CountersignSeal

    /// What `.platform` is in a build without the trait: nothing is kept and nothing opens.
    struct AbsentPresence: PresenceProvider {
        func bind(
            _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
        ) async throws(VaultError) -> PresenceAnswer<Void> { throw PackageTrait.presence.error }

        func release(
            _ name: ItemName, from vault: Vault, reason: String
        ) async throws(VaultError) -> PresenceAnswer<Secret> { throw PackageTrait.presence.error }

        func forget(_ name: ItemName, in vault: Vault) async throws(VaultError) {
            try await vault.remove(name)
        }
    }

    /// The fingerprint reader in a build without the trait.
    package struct FprintdReader: FingerprintReader {
        package init(user: String = "") {}

        package func verify(within patience: Duration) -> FingerprintVerdict {
            .unavailable(PackageTrait.presence.absence)
        }
    }

    /// The check of the account's password in a build without the trait.
    package struct PAMPasswordCheck: PasswordCheck {
        package init(service: String = "login", user: String, folder: String? = nil) {}

        package func verify(_ ask: @escaping @Sendable () -> Secret?) -> PasswordVerdict {
            .unavailable(PackageTrait.presence.absence)
        }
    }
#endif
