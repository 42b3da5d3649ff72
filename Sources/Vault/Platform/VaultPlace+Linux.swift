#if os(Linux)
    import CountersignSeal
    import Glibc

    extension VaultPlace {
        /// A file in `$XDG_DATA_HOME/countersign`, sealed with a key in a file beside it, as ``folder(_:)``
        /// keeps it: for development and tests. The package uses no keychain on Linux.
        public static var platform: VaultPlace { .folder(standardFolder) }

        /// The same in a folder of the program's own.
        public static func platform(folder: String) -> VaultPlace { .folder(folder) }

        /// A file that is sealed under a passphrase, in a folder of the program's own.
        ///
        /// `folder` is nil for `$XDG_DATA_HOME/countersign`. `passphrase` is called when the file is first
        /// opened, not on a thread that tasks need, and returns nil if it is not available now.
        public static func platform(
            folder: String? = nil, passphrase: @escaping @Sendable () async -> String?
        ) -> VaultPlace {
            let ask: @Sendable () -> Secret? = {
                BlockingWorkQueue.wait(for: passphrase).flatMap { $0 }.map {
                    Secret(copying: Array($0.utf8).span)
                }
            }
            return VaultPlace(
                .sealedFile(folder: folder ?? standardFolder, guardedBy: PassphraseGuard(ask: ask)))
        }

        /// Source: XDG Base Directory Specification 0.8.
        private static var standardFolder: String {
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
#endif
