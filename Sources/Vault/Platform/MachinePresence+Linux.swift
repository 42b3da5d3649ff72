#if os(Linux)
    import CountersignSeal
    import Glibc

    /// What `.platform` is on Linux: fprintd, then PAM.
    struct MachinePresence: PresenceMeans {
        private let service: String
        private let password: @Sendable (_ reason: String) async -> String?
        private let line = BlockingLine("countersign.presence")

        init(service: String, password: @escaping @Sendable (_ reason: String) async -> String?) {
            self.service = service
            self.password = password
        }

        func bind(
            _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
        ) async throws(VaultProblem) -> PresenceAnswer<Void> {
            try await line.run {
                Result { () throws(VaultProblem) in try boxes(vault).bind(secret, to: name, asking(reason)) }
            }
        }

        func release(
            _ name: ItemName, from vault: Vault, reason: String
        ) async throws(VaultProblem) -> PresenceAnswer<Secret> {
            try await line.run {
                Result { () throws(VaultProblem) in try boxes(vault).release(name, asking(reason)) }
            }
        }

        func forget(_ name: ItemName, in vault: Vault) async throws(VaultProblem) { try await vault.remove(name) }

        private func boxes(_ vault: Vault) throws(VaultProblem) -> PresenceBoxes {
            guard let entry = getpwuid(geteuid()), let name = entry.pointee.pw_name else {
                throw .failed("this process runs as nobody whom the machine knows")
            }
            return PresenceBoxes(
                vault, fingerprint: FprintdReader(),
                password: PAMPasswordCheck(service: service, user: String(cString: name)), tpm: TPMGuard.ofThisMachine)
        }

        private func asking(_ reason: String) -> @Sendable () -> Secret? {
            let password = password
            return {
                BlockingLine.wait { await password(reason) }.flatMap { $0 }.map { Secret(copying: Array($0.utf8).span) }
            }
        }
    }

    extension Presence {
        /// The machine's own: a finger, where fprintd knows one and a TPM holds the key; else the password of the account that this process
        /// runs as, checked by PAM.
        ///
        /// `password` asks for that password, showing a reason, and gives nil where the person gives up. `service` is PAM's: whose rules decide.
        public static func platform(
            service: String = "login", password: @escaping @Sendable (_ reason: String) async -> String?
        ) -> Presence {
            Presence(MachinePresence(service: service, password: password))
        }
    }
#endif
