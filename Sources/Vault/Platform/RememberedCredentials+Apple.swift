#if canImport(Security)
    import CountersignSeal
    import Foundation

    /// What an older version left in UserDefaults. Source: Foundation/NSUserDefaults.h.
    public struct DefaultsCredentials: RememberedCredentialSource {
        private let suite: String?
        private let service: String
        private let spelling: LegacyDefaultsItems.PasswordEncoding

        /// `suite` is nil for the program's own defaults; `service` is where the vault is to keep what is
        /// found.
        public init(
            suite: String? = nil, service: String, spelled spelling: LegacyDefaultsItems.PasswordEncoding
        ) {
            self.suite = suite
            self.service = service
            self.spelling = spelling
        }

        /// Of the keys of ``LegacyDefaultsItems``.
        public func read() -> VaultReadResult<[RememberedCredential]> {
            guard let defaults = UserDefaults(suiteName: suite) else {
                return .failed("no defaults of that name")
            }
            let remains = LegacyDefaultsItems(
                userName: defaults.string(forKey: LegacyDefaultsItems.userNameKey),
                remembers: defaults.object(forKey: LegacyDefaultsItems.switchKey).map { _ in
                    defaults.bool(forKey: LegacyDefaultsItems.switchKey) ? .on : .off
                },
                password: defaults.string(forKey: LegacyDefaultsItems.passwordKey).map {
                    Secret(copying: Array($0.utf8).span)
                })
            do {
                return .value(try remains.credentials(encodedAs: spelling, service: service))
            } catch {
                return VaultReadResult(error)
            }
        }

        /// Removes the key, and waits until that is kept.
        public func erase(_ remembered: RememberedCredential) throws(VaultError) {
            guard let defaults = UserDefaults(suiteName: suite) else {
                throw .failed("no defaults of that name")
            }
            defaults.removeObject(forKey: remembered.key)
            guard defaults.synchronize() else { throw .failed("\(remembered.key): cannot be erased") }
        }
    }

    /// Passwords that another library of the same program kept in the keychain, as SAMKeychain does. Source:
    /// ``LegacyKeychainItems``.
    public struct KeychainCredentials: RememberedCredentialSource {
        private let remains: LegacyKeychainItems

        /// `service` is where the library kept them, `target` where the vault is to; they differ. `group` is
        /// the library's access group.
        public init(service: String, to target: String, group: String? = nil) throws(VaultError) {
            remains = try LegacyKeychainItems(Keychain(group: group, mark: nil), service: service, to: target)
        }

        /// Every account of the service, with its password.
        public func read() -> VaultReadResult<[RememberedCredential]> { remains.read() }

        /// Deletes the library's item.
        public func erase(_ remembered: RememberedCredential) throws(VaultError) {
            try remains.erase(remembered)
        }
    }
#endif
