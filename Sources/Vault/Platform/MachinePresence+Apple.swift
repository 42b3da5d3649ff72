#if canImport(LocalAuthentication)
    import CountersignSeal

    /// What `.platform` is on Apple's systems: an item of the keychain under access control. The vault holds nothing of it.
    struct MachinePresence: PresenceMeans {
        func bind(
            _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
        ) async throws(VaultProblem) -> PresenceAnswer<Void> {
            PresenceStep.answer(PresenceItem(name).bind(secret))
        }

        func release(
            _ name: ItemName, from vault: Vault, reason: String
        ) async throws(VaultProblem) -> PresenceAnswer<Secret> {
            let (secret, code) = await PresenceItem(name).release(reason)
            return PresenceStep.answer(secret, code)
        }

        func forget(_ name: ItemName, in vault: Vault) async throws(VaultProblem) {
            try KeychainStatus.check(PresenceItem(name).remove(), "delete", absence: .isFine)
        }
    }

    extension UserPresence {
        /// The system's own: face, finger, or the device's passcode.
        public static var platform: UserPresence { UserPresence(MachinePresence()) }
    }
#endif
