#if canImport(LocalAuthentication)
    import CountersignSeal
    import Foundation
    import LocalAuthentication
    import Security

    /// What `.platform` is on Apple's systems: an item of the keychain under access control. The vault holds
    /// nothing of it.
    struct MachinePresence: PresenceProvider {
        func bind(
            _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
        ) async throws(VaultError) -> PresenceAnswer<Void> {
            PresenceStep.answer(status: PresenceItem(name).bind(secret))
        }

        func release(
            _ name: ItemName, from vault: Vault, reason: String
        ) async throws(VaultError) -> PresenceAnswer<Secret> {
            let (secret, code) = await PresenceItem(name).release(reason)
            return PresenceStep.answer(secret: secret, code: code)
        }

        func forget(_ name: ItemName, in vault: Vault) async throws(VaultError) {
            try KeychainStatus.check(PresenceItem(name).remove(), call: "delete", absence: .isFine)
        }
    }

    extension UserPresence {
        /// The system's own: face, finger, or the device's passcode.
        public static var platform: UserPresence { UserPresence(MachinePresence()) }
    }

    /// A keychain item that the system itself releases only to a person at the device: by face, finger, or
    /// the device's passcode. Nothing in this program decides it. Source: Security/SecAccessControl.h,
    /// LocalAuthentication/LAContext.h.
    package struct PresenceItem: Sendable {
        private let name: ItemName

        package init(_ name: ItemName) { self.name = name }

        /// Replaces the item; returns the keychain's status. It deletes and adds, because a change would ask
        /// the person: after a crash in between, the user signs in again.
        package func bind(_ secret: Secret) -> Int32 {
            let item = query()
            SecItemDelete(item as CFDictionary)
            item[kSecValueData] = Keychain.data(secret)
            item[kSecAttrAccessControl] = access()
            return SecItemAdd(item as CFDictionary, nil)
        }

        /// Asks the person, showing `reason`. The secret, or the code of `LAError`, else of the keychain, for
        /// ``LocalAuthenticationCode/step(_:)``.
        package func release(_ reason: String) async -> (secret: Secret?, code: Int) {
            let context = LAContext()
            guard let access = access() else { return (nil, LAError.Code.passcodeNotSet.rawValue) }
            do {
                _ = try await context.evaluateAccessControl(
                    access, operation: .useItem, localizedReason: reason)
            } catch {
                return (nil, (error as NSError).code)
            }
            let query = query()
            query[kSecUseAuthenticationContext] = context
            query[kSecReturnData] = kCFBooleanTrue
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            return ((found as? NSData).map { Keychain.secret($0) }, Int(status))
        }

        /// Does not ask the person; returns the keychain's status.
        package func remove() -> Int32 { SecItemDelete(query() as CFDictionary) }

        private func query() -> NSMutableDictionary {
            let query = NSMutableDictionary()
            query[kSecClass] = kSecClassGenericPassword
            query[kSecUseDataProtectionKeychain] = kCFBooleanTrue
            query[kSecAttrService] = NSString(string: name.service)
            query[kSecAttrAccount] = NSString(string: name.account)
            return query
        }

        /// Presence is biometrics, or the passcode where they fail; without a passcode there is no such item.
        private func access() -> SecAccessControl? {
            SecAccessControlCreateWithFlags(
                nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, .userPresence, nil)
        }
    }
#endif
