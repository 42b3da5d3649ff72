#if os(Linux)
    import CountersignSeal
    import CountersignWire
    import Glibc

    /// What `.platform` is on Linux.
    struct MachineVault: StoreProvider {
        let folder: String
        private let passphrase: @Sendable () async -> String?

        init(folder: String, passphrase: @escaping @Sendable () async -> String?) {
            self.folder = folder
            self.passphrase = passphrase
        }

        func open() throws(VaultError) -> (any ItemStore, StoreLifetime) {
            var means = PlatformVault.Capabilities()
            let passphrase = passphrase
            means.passphrase = {
                BlockingWorkQueue.wait(for: passphrase).flatMap { $0 }.map {
                    Secret(copying: Array($0.utf8).span)
                }
            }
            let platform = try PlatformVault(folder: folder, means: means)
            return (
                platform.store, platform.backEnd == .secretService ? .outlivesTheProgram : .endsWithTheFolder
            )
        }

        /// Source: XDG Base Directory Specification 0.8.
        static var standardFolder: String {
            if let data = variable("XDG_DATA_HOME"), data.hasPrefix("/") { return "\(data)/countersign" }
            let home = variable("HOME") ?? getpwuid(geteuid()).map { String(cString: $0.pointee.pw_dir) }
            // Without a home folder there is no place for secrets: the folder cannot be made, and the vault
            // reports that.
            return "\(home ?? "/nonexistent")/.local/share/countersign"
        }

        private static func variable(_ name: String) -> String? {
            getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }
    }

    extension VaultPlace {
        /// The machine's own: the Secret Service (GNOME's keyring, KWallet, KeePassXC), else a file sealed by
        /// the TPM, or by systemd-creds for a service that runs as root; chosen once, and kept in
        /// `$XDG_DATA_HOME/countersign`. A build without the package's traits `SecretService` or `TPM` passes
        /// over that place as where it does not answer; where it was chosen earlier, the vault fails.
        public static var platform: VaultPlace { .platform(folder: nil) { nil } }

        /// The same in a folder of the program's own, and with a passphrase where the machine has nothing
        /// else.
        /// `folder` is nil for the default. `passphrase` is called when the file is first opened, not on a
        /// thread that tasks need, and returns nil if it is not available now.
        public static func platform(
            folder: String? = nil, passphrase: @escaping @Sendable () async -> String?
        ) -> VaultPlace {
            VaultPlace(
                .machine(MachineVault(folder: folder ?? MachineVault.standardFolder, passphrase: passphrase)))
        }

        /// The same in a folder of the program's own.
        public static func platform(folder: String) -> VaultPlace { .platform(folder: folder) { nil } }
    }

    /// The vault of this machine, and how it was chosen.
    ///
    /// In order: the Secret Service, a file sealed by the TPM, one sealed by systemd-creds, one sealed under
    /// a passphrase. The choice is made once and kept in the folder, because it must not depend on the
    /// moment: a session over ssh, where no keyring answers, would otherwise find an empty file and report
    /// that no user is signed in.
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
        /// Those that come before it and why each was not taken, for people; empty where the choice was made
        /// earlier.
        package let rejectedBackEnds: [(backEnd: BackEnd, reason: String)]

        /// What the machine has. Arguments, so that a test can say.
        package struct Capabilities: Sendable {
            package var tpm = TPMGuard()
            package var systemdCreds = SystemdCredsGuard()
            /// Returns nil if the passphrase is not available now.
            package var passphrase: @Sendable () -> Secret? = { nil }

            package init() {}
        }

        /// Opens the vault in `folder` (made with mode 0700 if it does not exist). Probing the machine takes
        /// a second, and a passphrase needs a person.
        package init(folder: String, means: Capabilities = Capabilities()) throws(VaultError) {
            try PrivateFolder.make(folder)
            // A separate lock: the caller that opens the vault in order to write may hold the vault's.
            let lock = try FileLock.take("\(folder)/back-end.lock", within: .seconds(10))
            defer { lock.release() }
            let choice = PrivateFile(path: "\(folder)/back-end")
            if let bytes = try choice.read().get() {
                guard let known = BackEnd(rawValue: String(decoding: bytes, as: UTF8.self)) else {
                    throw .failed("\(choice.path): names no back end")
                }
                (backEnd, rejectedBackEnds) = (known, [])
            } else {
                (backEnd, rejectedBackEnds) = try PlatformVault.choose(means)
                try choice.replace(Array(backEnd.rawValue.utf8))
            }
            store = PlatformVault.store(for: backEnd, folder: folder, capabilities: means)
            vault = Vault(store, locks: VaultLocks(folder: folder))
        }

        private static func choose(
            _ means: Capabilities
        ) throws(VaultError) -> (BackEnd, [(backEnd: BackEnd, reason: String)]) {
            var passedOver: [(backEnd: BackEnd, reason: String)] = []
            for backEnd in BackEnd.allCases {
                guard let reason = unavailabilityReason(of: backEnd, capabilities: means) else {
                    return (backEnd, passedOver)
                }
                passedOver.append((backEnd, reason))
            }
            let reasons = passedOver.map { "\($0.backEnd.rawValue): \($0.reason)" }
            throw .failed("this machine has no place for secrets: \(reasons.joined(separator: "; "))")
        }

        /// A guard counts as usable if it returns the bytes that it was given; its own report is not enough.
        private static func unavailabilityReason(of backEnd: BackEnd, capabilities means: Capabilities)
            -> String?
        {
            guard let keyGuard = keyGuard(for: backEnd, capabilities: means) else {
                return SecretServiceStore().unavailabilityReason()
            }
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

        private static func keyGuard(for backEnd: BackEnd, capabilities means: Capabilities) -> (
            any KeyGuard
        )? {
            switch backEnd {
            case .secretService: nil
            case .tpm: means.tpm
            case .systemdCreds: means.systemdCreds
            case .passphrase: PassphraseGuard(ask: means.passphrase)
            }
        }

        private static func store(for backEnd: BackEnd, folder: String, capabilities means: Capabilities)
            -> any ItemStore
        {
            guard let keyGuard = keyGuard(for: backEnd, capabilities: means) else {
                return SecretServiceStore()
            }
            return SealedFile("\(folder)/items.sealed", guardedBy: keyGuard)
        }
    }

    /// The traits of the package, each of which adds a part of the SDK and the libraries that it needs.
    /// Source: Package.swift.
    package enum PackageTrait: String, Sendable, CaseIterable {
        case secretService = "SecretService"
        case tpm = "TPM"
        case presence = "Presence"

        /// For people, in a build without the trait.
        package var absence: String {
            "this build of the SDK leaves out \(rawValue); build with `--traits \(rawValue)`"
        }

        /// What everything fails with that needs the trait, in a build without it.
        var error: VaultError { .failed(absence) }
    }
#endif
