#if os(Linux)
    import CountersignSeal
    import Glibc

    /// What `.platform` is on Linux.
    struct MachineVault: StoreOpening {
        let folder: String
        private let passphrase: @Sendable () async -> String?

        init(folder: String, passphrase: @escaping @Sendable () async -> String?) {
            self.folder = folder
            self.passphrase = passphrase
        }

        func open() throws(VaultProblem) -> (any ItemStore, StoreLifetime) {
            var means = PlatformVault.Means()
            let passphrase = passphrase
            means.passphrase = {
                BlockingLine.wait(for: passphrase).flatMap { $0 }.map { Secret(copying: Array($0.utf8).span) }
            }
            let platform = try PlatformVault(folder: folder, means: means)
            return (platform.store, platform.backEnd == .secretService ? .outlivesTheProgram : .endsWithTheFolder)
        }

        /// Source: XDG Base Directory Specification 0.8.
        static var standardFolder: String {
            if let data = variable("XDG_DATA_HOME"), data.hasPrefix("/") { return "\(data)/countersign" }
            let home = variable("HOME") ?? getpwuid(geteuid()).map { String(cString: $0.pointee.pw_dir) }
            // Who has no home has no place for secrets either; the folder cannot be made, and the vault says so.
            return "\(home ?? "/nonexistent")/.local/share/countersign"
        }

        private static func variable(_ name: String) -> String? {
            getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }
    }

    extension VaultPlace {
        /// The machine's own: the Secret Service (GNOME's keyring, KWallet, KeePassXC), else a file sealed by the TPM, or by systemd-creds
        /// for a service that runs as root; chosen once, and kept in `$XDG_DATA_HOME/countersign`.
        public static var platform: VaultPlace { .platform(folder: nil) { nil } }

        /// The same in a folder of the program's own, and with a passphrase where the machine has nothing else.
        ///
        /// `folder` is nil for the usual one. `passphrase` is asked when the file is first opened, on no thread that tasks need, and gives
        /// nil where nobody can say it now.
        public static func platform(
            folder: String? = nil, passphrase: @escaping @Sendable () async -> String?
        ) -> VaultPlace {
            VaultPlace(
                .machine(MachineVault(folder: folder ?? MachineVault.standardFolder, passphrase: passphrase)))
        }

        /// The same in a folder of the program's own.
        public static func platform(folder: String) -> VaultPlace { .platform(folder: folder) { nil } }
    }
#endif
