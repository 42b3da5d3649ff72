#if os(Linux)
    import CountersignSeal
    import Glibc

    /// What `.platform` is on Linux: fprintd, then PAM.
    package struct MachinePresence: PresenceMeans {
        private let fingerprint: (any FingerprintReader)?
        private let check: any PasswordCheck
        private let tpm: (any KeyGuard)?
        private let cost: PassphraseGuard.Cost
        private let patience: Duration
        private let password: @Sendable (_ reason: String) async -> String?
        private let line = BlockingLine("countersign.presence")

        /// As ``PresenceBoxes`` has them. `password` asks the person, showing him why.
        package init(
            fingerprint: (any FingerprintReader)?, check: any PasswordCheck, tpm: (any KeyGuard)?,
            cost: PassphraseGuard.Cost = .standard, patience: Duration = .seconds(20),
            password: @escaping @Sendable (_ reason: String) async -> String?
        ) {
            self.fingerprint = fingerprint
            self.check = check
            self.tpm = tpm
            self.cost = cost
            self.patience = patience
            self.password = password
        }

        package func bind(
            _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
        ) async throws(VaultProblem) -> PresenceAnswer<Void> {
            try await line.run {
                Result { () throws(VaultProblem) in try boxes(vault).bind(secret, to: name, asking(reason)) }
            }
        }

        package func release(
            _ name: ItemName, from vault: Vault, reason: String
        ) async throws(VaultProblem) -> PresenceAnswer<Secret> {
            try await line.run {
                Result { () throws(VaultProblem) in try boxes(vault).release(name, asking(reason)) }
            }
        }

        package func forget(_ name: ItemName, in vault: Vault) async throws(VaultProblem) {
            try await vault.remove(name)
        }

        private func boxes(_ vault: Vault) -> PresenceBoxes {
            PresenceBoxes(
                vault, fingerprint: fingerprint, password: check, tpm: tpm, patience: patience, cost: cost)
        }

        private func asking(_ reason: String) -> @Sendable () -> Secret? {
            let password = password
            return {
                BlockingLine.wait { await password(reason) }.flatMap { $0 }.map { Secret(copying: Array($0.utf8).span) }
            }
        }
    }

    extension UserPresence {
        /// The machine's own: a finger, where fprintd knows one and a TPM holds the key; else the password of the account that this process
        /// runs as, checked by PAM.
        ///
        /// `password` asks for that password, showing a reason, and gives nil where the person gives up. `service` is PAM's: whose rules decide.
        public static func platform(
            service: String = "login", password: @escaping @Sendable (_ reason: String) async -> String?
        ) -> UserPresence {
            // Nobody whom the machine knows is nobody whom PAM knows.
            let user = getpwuid(geteuid())?.pointee.pw_name.map { String(cString: $0) } ?? ""
            return UserPresence(
                MachinePresence(
                    fingerprint: FprintdReader(), check: PAMPasswordCheck(service: service, user: user),
                    tpm: TPMGuard.ofThisMachine, password: password))
        }
    }
#endif
