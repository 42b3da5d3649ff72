#if canImport(LocalAuthentication)
    import CountersignSeal
    import Foundation
    import LocalAuthentication
    import Security

    /// A keychain item that the system itself gives out only to who is there: by face, finger, or the device's passcode. Nothing in this
    /// program decides it. Source: Security/SecAccessControl.h, LocalAuthentication/LAContext.h.
    package struct PresenceItem: Sendable {
        private let name: ItemName

        package init(_ name: ItemName) { self.name = name }

        /// Replaces the item; the keychain's status. Deleted and added, for a change would ask the person: who stops in between signs
        /// in again.
        package func bind(_ secret: Secret) -> Int32 {
            let item = query()
            SecItemDelete(item as CFDictionary)
            item[kSecValueData] = Keychain.data(secret)
            item[kSecAttrAccessControl] = access()
            return SecItemAdd(item as CFDictionary, nil)
        }

        /// Asks the person, showing `reason`. The secret, or the code of `LAError`, else of the keychain, for
        /// ``LocalAuthenticationError/step(_:)``.
        package func release(_ reason: String) async -> (secret: Secret?, code: Int) {
            let context = LAContext()
            guard let access = access() else { return (nil, LAError.Code.passcodeNotSet.rawValue) }
            do {
                _ = try await context.evaluateAccessControl(access, operation: .useItem, localizedReason: reason)
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

        /// Asks nobody; the keychain's status.
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
            SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, .userPresence, nil)
        }
    }
#endif
