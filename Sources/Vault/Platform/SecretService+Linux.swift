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
                    guard !item.isLocked else {
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
                guard !item.isLocked else {
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
                guard !item.isLocked else {
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

    /// libsecret, and GLib, whose functions its callers need, too.
    struct SecretLibraries: @unchecked Sendable {
        let secret: LoadedLibrary<cs_secret_functions>
        let gio: GIOLibrary
        /// Never changed and never freed.
        let schema: OpaquePointer?

        static let loaded = LazyLibrary { () throws(VaultError) in try SecretLibraries() }

        private init() throws(VaultError) {
            secret = try LoadedLibrary.load(
                ["libsecret-1.so.0": "libsecret-1-0"], by: cs_secret_functions_resolve
            ).get()
            gio = try GIOLibrary.loaded.get()
            schema = cs_secret_schema_new(secret.functions)
        }
    }

    /// One reference to a GLib object.
    final class SecretItemHandle {
        let pointer: OpaquePointer
        private let libraries: SecretLibraries

        init(taking pointer: OpaquePointer, from libraries: SecretLibraries) {
            self.pointer = pointer
            self.libraries = libraries
        }

        deinit { libraries.gio.g_object_unref(UnsafeMutableRawPointer(pointer)) }

        var isLocked: Bool { libraries.secret.secret_item_get_locked(pointer) != 0 }

        func name() throws(VaultError) -> ItemName {
            let gio = libraries.gio
            let attributes = libraries.secret.secret_item_get_attributes(pointer)
            defer { if let attributes { gio.g_hash_table_unref(attributes) } }
            func text(_ key: String) -> String {
                guard let attributes, let value = gio.g_hash_table_lookup(attributes, key) else { return "" }
                return String(cString: value.assumingMemoryBound(to: CChar.self))
            }
            return try ItemName(service: text("service"), account: text("account"))
        }
    }

    /// The calls of libsecret that the store makes, with their errors as ours.
    final class SecretServiceHandle {
        private let libraries: SecretLibraries
        private let service: OpaquePointer

        private var libsecret: LoadedLibrary<cs_secret_functions> { libraries.secret }
        private var gio: GIOLibrary { libraries.gio }

        init() throws(VaultError) {
            libraries = try SecretLibraries.loaded.get()
            let (libsecret, gio) = (libraries.secret, libraries.gio)
            var error: UnsafeMutablePointer<GError>?
            // One of our own each time, not the one that libsecret shares: that one keeps the session it had
            // with a daemon which may have been restarted since, and fails for ever after.
            let opened = libsecret.secret_service_open_sync(
                libsecret.secret_service_get_type(), nil, SECRET_SERVICE_OPEN_SESSION, nil, &error)
            guard let service = opened else {
                throw gio.vaultError("Secret Service", "no Secret Service", cause: error)
            }
            self.service = service
            // GLib's shared connection ends the program when the bus goes; that is not a library's to decide.
            gio.g_dbus_connection_set_exit_on_close(gio.g_dbus_proxy_get_connection(service), 0)
        }

        deinit { gio.g_object_unref(UnsafeMutableRawPointer(service)) }

        /// The items of this name, or all of ours; locked ones too.
        func search(_ name: ItemName?) throws(VaultError) -> [SecretItemHandle] {
            let attributes = self.attributes(name)
            defer { gio.g_hash_table_unref(attributes) }
            var error: UnsafeMutablePointer<GError>?
            let list = libsecret.secret_service_search_sync(
                service, libraries.schema, attributes, SECRET_SEARCH_ALL, nil, &error)
            if let error { throw failure("search", cause: error) }
            defer { gio.g_list_free(list) }
            var items: [SecretItemHandle] = []
            var next = list
            while let here = next {
                if let object = here.pointee.data {
                    items.append(SecretItemHandle(taking: OpaquePointer(object), from: libraries))
                }
                next = here.pointee.next
            }
            return items
        }

        func secret(_ item: SecretItemHandle) throws(VaultError) -> VaultReadResult<Secret> {
            var error: UnsafeMutablePointer<GError>?
            guard libsecret.secret_item_load_secret_sync(item.pointer, nil, &error) != 0 else {
                let isLocked = error.map {
                    gio.g_error_matches($0, libsecret.secret_error_get_quark(), SECRET_ERROR_IS_LOCKED)
                }
                if let isLocked, isLocked != 0 {
                    gio.g_error_free(error)
                    return .locked("the keyring was locked meanwhile")
                }
                throw failure("read", cause: error)
            }
            guard let value = libsecret.secret_item_get_secret(item.pointer) else {
                return .failed("Secret Service: an item without a secret")
            }
            defer { libsecret.secret_value_unref(UnsafeMutableRawPointer(value)) }
            var count: UInt = 0
            let start = libsecret.secret_value_get(value, &count)
            return .value(
                Secret(copying: Span(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: Int(count)))))
        }

        func create(_ bytes: Secret, at name: ItemName) throws(VaultError) {
            let attributes = self.attributes(name)
            defer { gio.g_hash_table_unref(attributes) }
            guard
                let value = bytes.withExposedBytes({ bytes in
                    bytes.withUnsafeBytes { bytes in
                        libsecret.secret_value_new(
                            bytes.bindMemory(to: CChar.self).baseAddress, bytes.count,
                            "application/octet-stream")
                    }
                })
            else { throw .failed("Secret Service: no value can be made") }
            defer { libsecret.secret_value_unref(UnsafeMutableRawPointer(value)) }
            let collection = try collection()
            defer { gio.g_object_unref(UnsafeMutableRawPointer(collection)) }
            var error: UnsafeMutablePointer<GError>?
            guard
                let item = libsecret.secret_item_create_sync(
                    collection, libraries.schema, attributes, "\(name)", value,
                    SECRET_ITEM_CREATE_REPLACE, nil, &error)
            else { throw failure("write", cause: error) }
            gio.g_object_unref(UnsafeMutableRawPointer(item))
        }

        func delete(_ item: SecretItemHandle) throws(VaultError) {
            var error: UnsafeMutablePointer<GError>?
            guard libsecret.secret_item_delete_sync(item.pointer, nil, &error) != 0 else {
                throw failure("delete", cause: error)
            }
        }

        /// Whether the collection that we write to is locked. Fails where there is none.
        func isLocked() throws(VaultError) -> Bool {
            let collection = try collection()
            defer { gio.g_object_unref(UnsafeMutableRawPointer(collection)) }
            return libsecret.secret_collection_get_locked(collection) != 0
        }

        /// The one that the user has as default; ours to unref.
        private func collection() throws(VaultError) -> OpaquePointer {
            var error: UnsafeMutablePointer<GError>?
            let collection = libsecret.secret_collection_for_alias_sync(
                service, "default", SECRET_COLLECTION_NONE, nil, &error)
            guard let collection else { throw failure("no default collection", cause: error) }
            return collection
        }

        /// Takes the error.
        private func failure(_ what: String, cause error: UnsafeMutablePointer<GError>?) -> VaultError {
            gio.vaultError("Secret Service", what, cause: error)
        }

        private func attributes(_ name: ItemName?) -> OpaquePointer? {
            let attributes = gio.g_hash_table_new_full(
                gio.g_str_hash, gio.g_str_equal, gio.g_free, gio.g_free)
            if let name {
                _ = gio.g_hash_table_insert(attributes, gio.g_strdup("service"), gio.g_strdup(name.service))
                _ = gio.g_hash_table_insert(attributes, gio.g_strdup("account"), gio.g_strdup(name.account))
            }
            return attributes
        }
    }

#endif
