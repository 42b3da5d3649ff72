#if os(Linux)
    import CountersignSeal
    import Glibc

    /// What `.platform` is on Linux: fprintd, then PAM.
    package struct MachinePresence: PresenceProvider {
        private let fingerprint: (any FingerprintReader)?
        private let check: any PasswordCheck
        private let fingerprintGuard: (any KeyGuard)?
        private let cost: PassphraseGuard.Cost
        private let patience: Duration
        private let password: @Sendable (_ reason: String) async -> String?
        private let queue = BlockingWorkQueue("countersign.presence")

        /// As in ``PresenceSecretStore``. `password` asks the person and shows the reason.
        package init(
            fingerprint: (any FingerprintReader)?, check: any PasswordCheck,
            fingerprintGuard: (any KeyGuard)?,
            cost: PassphraseGuard.Cost = .standard, patience: Duration = .seconds(20),
            password: @escaping @Sendable (_ reason: String) async -> String?
        ) {
            self.fingerprint = fingerprint
            self.check = check
            self.fingerprintGuard = fingerprintGuard
            self.cost = cost
            self.patience = patience
            self.password = password
        }

        package func bind(
            _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
        ) async throws(VaultError) -> PresenceAnswer<Void> {
            try await queue.run {
                Result { () throws(VaultError) in try boxes(vault).bind(secret, to: name, ask: asking(reason))
                }
            }
        }

        package func release(
            _ name: ItemName, from vault: Vault, reason: String
        ) async throws(VaultError) -> PresenceAnswer<Secret> {
            try await queue.run {
                Result { () throws(VaultError) in try boxes(vault).release(name, ask: asking(reason)) }
            }
        }

        package func forget(_ name: ItemName, in vault: Vault) async throws(VaultError) {
            try await vault.remove(name)
        }

        private func boxes(_ vault: Vault) -> PresenceSecretStore {
            PresenceSecretStore(
                vault, fingerprint: fingerprint, password: check, fingerprintGuard: fingerprintGuard,
                patience: patience, cost: cost)
        }

        private func asking(_ reason: String) -> @Sendable () -> Secret? {
            let password = password
            return {
                BlockingWorkQueue.wait { await password(reason) }.flatMap { $0 }.map {
                    Secret(copying: Array($0.utf8).span)
                }
            }
        }
    }

    extension UserPresence {
        /// The machine's own check: the password of the account that this process runs as, checked by PAM.
        ///
        /// `password` asks for that password, shows a reason, and returns nil if the person gives up.
        /// `service` is the PAM service whose rules apply.
        public static func platform(
            service: String = "login", password: @escaping @Sendable (_ reason: String) async -> String?
        ) -> UserPresence {
            machine(service: service, fingerprint: nil, fingerprintGuard: nil, password: password)
        }

        /// The same, or a finger that fprintd knows.
        ///
        /// The key that a finger opens is in a file of mode 0600, which is made if it does not exist. This
        /// process reads it after a match; every other program of the same user can read it without a finger.
        public static func platform(
            service: String = "login", fingerprintKeyReadableByTheUsersPrograms path: String,
            password: @escaping @Sendable (_ reason: String) async -> String?
        ) -> UserPresence {
            machine(
                service: service, fingerprint: FprintdReader(), fingerprintGuard: KeyFileGuard(path),
                password: password)
        }

        private static func machine(
            service: String, fingerprint: FprintdReader?, fingerprintGuard: KeyFileGuard?,
            password: @escaping @Sendable (_ reason: String) async -> String?
        ) -> UserPresence {
            // A user without an entry in the machine's user database is unknown to PAM too.
            let user = getpwuid(geteuid())?.pointee.pw_name.map { String(cString: $0) } ?? ""
            return UserPresence(
                MachinePresence(
                    fingerprint: fingerprint, check: PAMPasswordCheck(service: service, user: user),
                    fingerprintGuard: fingerprintGuard, password: password))
        }
    }
#endif
