#if os(Linux)
    import CSecret
    import CountersignSeal

    /// The desktop's keyring, by the D-Bus interface of the Secret Service that GNOME, KDE and KeePassXC fulfil. Source: Secret Service
    /// API Draft 0.2.
    ///
    /// Never asks to unlock and never raises a prompt: a program that reads at night must not hang on a window. The simple calls of
    /// libsecret skip what is locked, so that locked looks like absent; the search gives both and says which is which. Services
    /// and accounts are attributes, which the keyring does not seal: they can be read from its file.
    package struct SecretServiceStore: ItemStore {
        package init() {}

        package func find(_ name: ItemName) -> Reading<Secret> {
            do {
                let service = try SecretServiceHandle()
                for item in try service.search(name) {
                    guard secret_item_get_locked(item.pointer) == 0 else {
                        return .locked("\(name): the keyring is locked")
                    }
                    return try service.secret(item)
                }
                // A keyring that is closed need not show what it holds.
                return try service.isLocked() ? .locked("the keyring is locked") : .absent
            } catch {
                return Reading(error)
            }
        }

        package func names() throws(VaultProblem) -> [ItemName] {
            let service = try SecretServiceHandle()
            let items = try service.search(nil)
            guard try !service.isLocked() else { throw .locked("the keyring is locked") }
            var names: [ItemName] = []
            for item in items {
                guard secret_item_get_locked(item.pointer) == 0 else { throw .locked("the keyring is locked") }
                names.append(try item.name())
            }
            return names
        }

        package func put(_ bytes: Secret, at name: ItemName) throws(VaultProblem) {
            let service = try SecretServiceHandle()
            guard try !service.isLocked() else { throw .locked("the keyring is locked") }
            try service.create(bytes, at: name)
        }

        package func remove(_ name: ItemName) throws(VaultProblem) {
            let service = try SecretServiceHandle()
            let items = try service.search(name)
            guard try !service.isLocked() else { throw .locked("the keyring is locked") }
            for item in items {
                guard secret_item_get_locked(item.pointer) == 0 else { throw .locked("\(name): the keyring is locked") }
                try service.delete(item)
            }
        }

        /// Why it cannot be used on this machine now; nil where it can, be it locked or not.
        package func whyNot() -> String? {
            do {
                _ = try SecretServiceHandle().isLocked()
                return nil
            } catch .failed(let detail) {
                return detail
            } catch {
                return "\(error)"
            }
        }
    }
#endif
