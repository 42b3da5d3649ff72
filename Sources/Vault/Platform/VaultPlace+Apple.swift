#if canImport(Security)
    import CountersignSeal
    import Foundation
    import Security

    extension VaultPlace {
        /// The keychain, for this program alone.
        public static var platform: VaultPlace {
            VaultPlace(.outliving(KeychainStore(Keychain()), folder: standardFolder))
        }

        /// The keychain, shared with the app's extensions and the team's other apps: `group` is an access
        /// group of the entitlements, `folder` one in the shared container, so that an app and its extension
        /// do not renew a session at once.
        public static func keychain(group: String, folder: String) -> VaultPlace {
            VaultPlace(.outliving(KeychainStore(Keychain(group: group)), folder: folder))
        }

        /// Removed together with the app. Source: Foundation/NSPathUtilities.h.
        private static var standardFolder: String {
            let all = NSSearchPathForDirectoriesInDomains(.applicationSupportDirectory, .userDomainMask, true)
            return "\(all.first ?? NSHomeDirectory())/countersign"
        }
    }

    /// Apple's keychain: generic passwords that can be read once the device was unlocked after its start, and
    /// never leave it, be it by a backup or by iCloud. Source: Security/SecItem.h.
    package struct Keychain: KeychainCalls {
        private let group: String?
        private let mark: String?

        /// `group` is an access group, for programs that share a vault. `mark` tells the vault's items (the
        /// default) from another library's (nil) of the same program.
        package init(group: String? = nil, mark: String? = "countersign vault") {
            self.group = group
            self.mark = mark
        }

        package func copy(_ name: ItemName) -> (status: Int32, bytes: Secret?) {
            let query = query(name)
            query[kSecReturnData] = kCFBooleanTrue
            query[kSecMatchLimit] = kSecMatchLimitOne
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            return (status, (found as? NSData).map { Keychain.secret($0) })
        }

        package func list() -> (status: Int32, names: [(service: String, account: String)]) {
            let query = query(nil)
            query[kSecReturnAttributes] = kCFBooleanTrue
            query[kSecMatchLimit] = kSecMatchLimitAll
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            let items = (found as? [NSDictionary]) ?? []
            return (
                status,
                items.map { ($0[kSecAttrService] as? String ?? "", $0[kSecAttrAccount] as? String ?? "") }
            )
        }

        package func add(_ bytes: Secret, at name: ItemName) -> Int32 {
            let item = query(name)
            item[kSecValueData] = Keychain.data(bytes)
            item[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            return SecItemAdd(item as CFDictionary, nil)
        }

        package func update(_ bytes: Secret, at name: ItemName) -> Int32 {
            let change = NSMutableDictionary()
            change[kSecValueData] = Keychain.data(bytes)
            return SecItemUpdate(query(name) as CFDictionary, change as CFDictionary)
        }

        package func delete(_ name: ItemName) -> Int32 { SecItemDelete(query(name) as CFDictionary) }

        private func query(_ name: ItemName?) -> NSMutableDictionary {
            let query = NSMutableDictionary()
            query[kSecClass] = kSecClassGenericPassword
            // On macOS too: the file-based keychain asks people for passwords.
            query[kSecUseDataProtectionKeychain] = kCFBooleanTrue
            query[kSecAttrSynchronizable] = kCFBooleanFalse
            if let mark { query[kSecAttrDescription] = NSString(string: mark) }
            if let group { query[kSecAttrAccessGroup] = NSString(string: group) }
            if let name {
                query[kSecAttrService] = NSString(string: name.service)
                query[kSecAttrAccount] = NSString(string: name.account)
            }
            return query
        }

        static func data(_ secret: Secret) -> NSData {
            secret.withExposedBytes { bytes in
                bytes.withUnsafeBytes { NSData(bytes: $0.baseAddress, length: $0.count) }
            }
        }

        static func secret(_ data: NSData) -> Secret {
            Secret(copying: Span(_unsafeBytes: UnsafeRawBufferPointer(start: data.bytes, count: data.length)))
        }
    }
#endif
