#if canImport(Security)
    import CountersignSeal
    import Foundation

    /// What `.platform` is on Apple's systems: the keychain. The folder holds locks and the installation's mark, and nothing secret.
    struct MachineVault: StoreOpening {
        let folder: String
        let group: String?

        func open() throws(VaultProblem) -> (any ItemStore, StoreLifetime) {
            (KeychainStore(Keychain(group: group)), .outlivesTheProgram)
        }

        /// Removed together with the app. Source: Foundation/NSPathUtilities.h.
        static var standardFolder: String {
            let all = NSSearchPathForDirectoriesInDomains(.applicationSupportDirectory, .userDomainMask, true)
            return "\(all.first ?? NSHomeDirectory())/countersign"
        }
    }

    extension VaultPlace {
        /// The keychain, for this program alone.
        public static var platform: VaultPlace {
            VaultPlace(.machine(MachineVault(folder: MachineVault.standardFolder, group: nil)))
        }

        /// The keychain, shared with the app's extensions and the team's other apps: `group` is an access group of the entitlements, `folder`
        /// one in the shared container, so that an app and its extension do not renew a session at once.
        public static func keychain(group: String, folder: String) -> VaultPlace {
            VaultPlace(.machine(MachineVault(folder: folder, group: group)))
        }
    }
#endif
