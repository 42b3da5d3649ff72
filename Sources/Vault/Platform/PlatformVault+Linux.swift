#if os(Linux)
    import CountersignSeal
    import CountersignWire

    /// The vault of this machine, and how it was chosen.
    ///
    /// In order: the Secret Service, else a file sealed by the TPM, by systemd-creds, or under a passphrase. Chosen once and kept in the
    /// folder, for the choice must not follow the weather: who opens a session over ssh, where no keyring answers, would find an
    /// empty file, and nothing that says that he is signed in.
    package struct PlatformVault: Sendable {
        package enum BackEnd: String, Sendable, CaseIterable {
            case secretService = "secret-service"
            case tpm
            case systemdCreds = "systemd-creds"
            case passphrase
        }

        package let vault: Vault
        package let store: any ItemStore
        package let backEnd: BackEnd
        /// Those that come before it and why each was not taken, for people; empty where the choice was made earlier.
        package let passedOver: [(backEnd: BackEnd, reason: String)]

        /// What the machine has. Arguments, so that a test can say.
        package struct Means: Sendable {
            package var tpm = TPMGuard()
            package var systemdCreds = SystemdCredsGuard()
            /// Nil from it where nobody can say one now.
            package var passphrase: @Sendable () -> Secret? = { nil }

            package init() {}
        }

        /// Opens the vault in `folder` (made with mode 0700 where there is none). Asking the machine what it has takes a second, and for a
        /// passphrase a person.
        package init(folder: String, means: Means = Means()) throws(VaultProblem) {
            try PrivateFolder.make(folder)
            // A lock of its own: the vault's may be held by who opens it to write.
            let lock = try FileLock.take("\(folder)/back-end.lock", within: .seconds(10))
            defer { lock.release() }
            let choice = PrivateFile(path: "\(folder)/back-end")
            if let bytes = try choice.read().certain() {
                guard let known = BackEnd(rawValue: String(decoding: bytes, as: UTF8.self)) else {
                    throw .failed("\(choice.path): names no back end")
                }
                (backEnd, passedOver) = (known, [])
            } else {
                (backEnd, passedOver) = try PlatformVault.choose(means)
                try choice.replace(Array(backEnd.rawValue.utf8))
            }
            store = PlatformVault.store(backEnd, folder, means)
            vault = Vault(store, locks: VaultLocks(folder: folder))
        }

        private static func choose(
            _ means: Means
        ) throws(VaultProblem) -> (BackEnd, [(backEnd: BackEnd, reason: String)]) {
            var passedOver: [(backEnd: BackEnd, reason: String)] = []
            for backEnd in BackEnd.allCases {
                guard let reason = whyNot(backEnd, means) else { return (backEnd, passedOver) }
                passedOver.append((backEnd, reason))
            }
            let reasons = passedOver.map { "\($0.backEnd.rawValue): \($0.reason)" }
            throw .failed("this machine has no place for secrets: \(reasons.joined(separator: "; "))")
        }

        /// A guard is there when it gives back what it was given; that it says so is not enough.
        private static func whyNot(_ backEnd: BackEnd, _ means: Means) -> String? {
            guard let keyGuard = keyGuard(backEnd, means) else { return SecretServiceStore().whyNot() }
            do {
                let key = MasterKey.random()
                let opened = try keyGuard.open(keyGuard.seal(key))
                return MasterKey(opened)?.id == MasterKey(key)?.id ? nil : "does not open what it sealed"
            } catch .locked(let detail), .failed(let detail), .badName(let detail) {
                return detail
            } catch {
                return "\(error)"
            }
        }

        private static func keyGuard(_ backEnd: BackEnd, _ means: Means) -> (any KeyGuard)? {
            switch backEnd {
            case .secretService: nil
            case .tpm: means.tpm
            case .systemdCreds: means.systemdCreds
            case .passphrase: PassphraseGuard(ask: means.passphrase)
            }
        }

        private static func store(_ backEnd: BackEnd, _ folder: String, _ means: Means) -> any ItemStore {
            guard let keyGuard = keyGuard(backEnd, means) else { return SecretServiceStore() }
            return SealedFile("\(folder)/items.sealed", guardedBy: keyGuard)
        }
    }
#endif
