#if canImport(Security)
    /// Passwords that another library of the same program kept in the keychain, as SAMKeychain does. Source: ``KeychainRemains``.
    public struct KeychainCredentials: RememberedCredentials {
        private let remains: KeychainRemains

        /// `service` is where the library kept them, `target` where the vault is to; they differ. `group` is the library's access group.
        public init(service: String, to target: String, group: String? = nil) throws(VaultProblem) {
            remains = try KeychainRemains(Keychain(group: group, mark: nil), service: service, to: target)
        }

        /// Every account of the service, with its password.
        public func read() -> Reading<[RememberedCredential]> { remains.read() }

        /// Deletes the library's item.
        public func erase(_ remembered: RememberedCredential) throws(VaultProblem) { try remains.erase(remembered) }
    }
#endif
