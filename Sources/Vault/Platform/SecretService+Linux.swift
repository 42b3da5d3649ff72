#if os(Linux) && SecretService
    import CGIO
    import CSecret
    import CountersignSeal

    /// The desktop's keyring, by the D-Bus interface of the Secret Service that GNOME, KDE and KeePassXC
    /// fulfil. Source: Secret Service API Draft 0.2.
    ///
    /// Never asks to unlock and never raises a prompt: a program that reads at night must not hang on a
    /// window. The simple calls of libsecret skip what is locked, so that locked looks like absent; the
    /// search gives both and says which is which. Services and accounts are attributes, which the keyring
    /// does not seal: they can be read from its file.
    package struct SecretServiceStore: ItemStore {
        package init() {}

        package func find(_ name: ItemName) -> VaultReadResult<Secret> {
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
                return VaultReadResult(error)
            }
        }

        package func names() throws(VaultError) -> [ItemName] {
            let service = try SecretServiceHandle()
            let items = try service.search(nil)
            guard try !service.isLocked() else { throw .locked("the keyring is locked") }
            var names: [ItemName] = []
            for item in items {
                guard secret_item_get_locked(item.pointer) == 0 else {
                    throw .locked("the keyring is locked")
                }
                names.append(try item.name())
            }
            return names
        }

        package func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
            let service = try SecretServiceHandle()
            guard try !service.isLocked() else { throw .locked("the keyring is locked") }
            try service.create(bytes, at: name)
        }

        package func remove(_ name: ItemName) throws(VaultError) {
            let service = try SecretServiceHandle()
            let items = try service.search(name)
            guard try !service.isLocked() else { throw .locked("the keyring is locked") }
            for item in items {
                guard secret_item_get_locked(item.pointer) == 0 else {
                    throw .locked("\(name): the keyring is locked")
                }
                try service.delete(item)
            }
        }

        /// Why it cannot be used on this machine now; nil where it can, be it locked or not.
        package func unavailabilityReason() -> String? {
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

    /// One reference to a GLib object.
    final class SecretItemHandle {
        let pointer: OpaquePointer

        init(taking pointer: OpaquePointer) { self.pointer = pointer }

        deinit { g_object_unref(UnsafeMutableRawPointer(pointer)) }

        func name() throws(VaultError) -> ItemName {
            let attributes = secret_item_get_attributes(pointer)
            defer { if let attributes { g_hash_table_unref(attributes) } }
            func text(_ key: String) -> String {
                guard let attributes, let value = g_hash_table_lookup(attributes, key) else { return "" }
                return String(cString: value.assumingMemoryBound(to: CChar.self))
            }
            return try ItemName(service: text("service"), account: text("account"))
        }
    }

    /// The calls of libsecret that the store makes, with their errors as ours.
    final class SecretServiceHandle {
        // Made once, never changed and never freed.
        nonisolated(unsafe) private static let schema = cs_secret_schema_new()

        private let service: OpaquePointer

        init() throws(VaultError) {
            var error: UnsafeMutablePointer<GError>?
            // One of our own each time, not the one that libsecret shares: that one keeps the session it had
            // with a daemon which may have been restarted since, and fails for ever after.
            let opened = secret_service_open_sync(
                secret_service_get_type(), nil, SECRET_SERVICE_OPEN_SESSION, nil, &error)
            guard let service = opened else { throw vaultError("no Secret Service", cause: error) }
            self.service = service
            // GLib's shared connection ends the program when the bus goes; that is not a library's to decide.
            g_dbus_connection_set_exit_on_close(g_dbus_proxy_get_connection(service), 0)
        }

        deinit { g_object_unref(UnsafeMutableRawPointer(service)) }

        /// The items of this name, or all of ours; locked ones too.
        func search(_ name: ItemName?) throws(VaultError) -> [SecretItemHandle] {
            let attributes = SecretServiceHandle.attributes(name)
            defer { g_hash_table_unref(attributes) }
            var error: UnsafeMutablePointer<GError>?
            let list = secret_service_search_sync(
                service, SecretServiceHandle.schema, attributes, SECRET_SEARCH_ALL, nil, &error)
            if let error { throw vaultError("search", cause: error) }
            defer { g_list_free(list) }
            var items: [SecretItemHandle] = []
            var next = list
            while let here = next {
                if let object = here.pointee.data {
                    items.append(SecretItemHandle(taking: OpaquePointer(object)))
                }
                next = here.pointee.next
            }
            return items
        }

        func secret(_ item: SecretItemHandle) throws(VaultError) -> VaultReadResult<Secret> {
            var error: UnsafeMutablePointer<GError>?
            guard secret_item_load_secret_sync(item.pointer, nil, &error) != 0 else {
                let isLocked = error.map {
                    g_error_matches($0, secret_error_get_quark(), SECRET_ERROR_IS_LOCKED)
                }
                if let isLocked, isLocked != 0 {
                    g_error_free(error)
                    return .locked("the keyring was locked meanwhile")
                }
                throw vaultError("read", cause: error)
            }
            guard let value = secret_item_get_secret(item.pointer) else {
                return .failed("Secret Service: an item without a secret")
            }
            defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
            var count: UInt = 0
            let start = secret_value_get(value, &count)
            return .value(
                Secret(copying: Span(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: Int(count)))))
        }

        func create(_ bytes: Secret, at name: ItemName) throws(VaultError) {
            let attributes = SecretServiceHandle.attributes(name)
            defer { g_hash_table_unref(attributes) }
            guard
                let value = bytes.withExposedBytes({ bytes in
                    bytes.withUnsafeBytes { bytes in
                        secret_value_new(
                            bytes.bindMemory(to: CChar.self).baseAddress, bytes.count,
                            "application/octet-stream")
                    }
                })
            else { throw .failed("Secret Service: no value can be made") }
            defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
            let collection = try collection()
            defer { g_object_unref(UnsafeMutableRawPointer(collection)) }
            var error: UnsafeMutablePointer<GError>?
            guard
                let item = secret_item_create_sync(
                    collection, SecretServiceHandle.schema, attributes, "\(name)", value,
                    SECRET_ITEM_CREATE_REPLACE, nil, &error)
            else { throw vaultError("write", cause: error) }
            g_object_unref(UnsafeMutableRawPointer(item))
        }

        func delete(_ item: SecretItemHandle) throws(VaultError) {
            var error: UnsafeMutablePointer<GError>?
            guard secret_item_delete_sync(item.pointer, nil, &error) != 0 else {
                throw vaultError("delete", cause: error)
            }
        }

        /// Whether the collection that we write to is locked. Fails where there is none.
        func isLocked() throws(VaultError) -> Bool {
            let collection = try collection()
            defer { g_object_unref(UnsafeMutableRawPointer(collection)) }
            return secret_collection_get_locked(collection) != 0
        }

        /// The one that the user has as default; ours to unref.
        private func collection() throws(VaultError) -> OpaquePointer {
            var error: UnsafeMutablePointer<GError>?
            let collection = secret_collection_for_alias_sync(
                service, "default", SECRET_COLLECTION_NONE, nil, &error)
            guard let collection else { throw vaultError("no default collection", cause: error) }
            return collection
        }

        private static func attributes(_ name: ItemName?) -> OpaquePointer? {
            let attributes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)
            if let name {
                g_hash_table_insert(attributes, g_strdup("service"), g_strdup(name.service))
                g_hash_table_insert(attributes, g_strdup("account"), g_strdup(name.account))
            }
            return attributes
        }
    }

    /// Takes the error.
    private func vaultError(_ what: String, cause error: UnsafeMutablePointer<GError>?) -> VaultError {
        guard let error else { return .failed("Secret Service: \(what)") }
        defer { g_error_free(error) }
        return .failed("Secret Service: \(what): \(String(cString: error.pointee.message))")
    }
#endif
