#if os(Linux)
    import CSecret
    import CountersignSeal

    /// One reference to a GLib object.
    final class SecretItemHandle {
        let pointer: UnsafeMutablePointer<SecretItem>

        init(taking pointer: UnsafeMutablePointer<SecretItem>) { self.pointer = pointer }

        deinit { g_object_unref(pointer) }

        func name() throws(VaultProblem) -> ItemName {
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
        private let service: UnsafeMutablePointer<SecretService>

        init() throws(VaultProblem) {
            var error: UnsafeMutablePointer<GError>?
            // One of our own each time, not the one that libsecret shares: that one keeps the session it had with a daemon which
            // may have been restarted since, and fails for ever after.
            let opened = secret_service_open_sync(
                secret_service_get_type(), nil, SECRET_SERVICE_OPEN_SESSION, nil, &error)
            guard let service = opened else { throw problem("no Secret Service", error) }
            self.service = service
            // GLib's shared connection ends the program when the bus goes; that is not a library's to decide.
            g_dbus_connection_set_exit_on_close(cs_secret_connection(service), 0)
        }

        deinit { g_object_unref(service) }

        /// The items of this name, or all of ours; locked ones too.
        func search(_ name: ItemName?) throws(VaultProblem) -> [SecretItemHandle] {
            let attributes = SecretServiceHandle.attributes(name)
            defer { g_hash_table_unref(attributes) }
            var error: UnsafeMutablePointer<GError>?
            let list = secret_service_search_sync(
                service, cs_secret_schema(), attributes, SECRET_SEARCH_ALL, nil, &error)
            if let error { throw problem("search", error) }
            defer { g_list_free(list) }
            var items: [SecretItemHandle] = []
            var next = list
            while let here = next {
                if let object = here.pointee.data { items.append(SecretItemHandle(taking: cs_secret_item(object))) }
                next = here.pointee.next
            }
            return items
        }

        func secret(_ item: SecretItemHandle) throws(VaultProblem) -> Reading<Secret> {
            var error: UnsafeMutablePointer<GError>?
            guard secret_item_load_secret_sync(item.pointer, nil, &error) != 0 else {
                let isLocked = error.map {
                    g_error_matches($0, secret_error_get_quark(), Int32(SECRET_ERROR_IS_LOCKED.rawValue))
                }
                if let isLocked, isLocked != 0 {
                    g_error_free(error)
                    return .locked("the keyring was locked meanwhile")
                }
                throw problem("read", error)
            }
            guard let value = secret_item_get_secret(item.pointer) else {
                return .failed("Secret Service: an item without a secret")
            }
            defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
            var count: gsize = 0
            let start = secret_value_get(value, &count)
            return .value(Secret(copying: Span(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: Int(count)))))
        }

        func create(_ bytes: Secret, at name: ItemName) throws(VaultProblem) {
            let attributes = SecretServiceHandle.attributes(name)
            defer { g_hash_table_unref(attributes) }
            guard
                let value = bytes.withExposedBytes({ bytes in
                    bytes.withUnsafeBytes { bytes in
                        secret_value_new(
                            bytes.bindMemory(to: CChar.self).baseAddress, bytes.count, "application/octet-stream")
                    }
                })
            else { throw .failed("Secret Service: no value can be made") }
            defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
            let collection = try collection()
            defer { g_object_unref(UnsafeMutableRawPointer(collection)) }
            var error: UnsafeMutablePointer<GError>?
            guard
                let item = secret_item_create_sync(
                    collection, cs_secret_schema(), attributes, "\(name)", value, SECRET_ITEM_CREATE_REPLACE, nil,
                    &error)
            else { throw problem("write", error) }
            g_object_unref(UnsafeMutableRawPointer(item))
        }

        func delete(_ item: SecretItemHandle) throws(VaultProblem) {
            var error: UnsafeMutablePointer<GError>?
            guard secret_item_delete_sync(item.pointer, nil, &error) != 0 else { throw problem("delete", error) }
        }

        /// Whether the collection that we write to is locked. Fails where there is none.
        func isLocked() throws(VaultProblem) -> Bool {
            let collection = try collection()
            defer { g_object_unref(UnsafeMutableRawPointer(collection)) }
            return secret_collection_get_locked(collection) != 0
        }

        /// The one that the user has as default; ours to unref.
        private func collection() throws(VaultProblem) -> UnsafeMutablePointer<SecretCollection> {
            var error: UnsafeMutablePointer<GError>?
            let collection = secret_collection_for_alias_sync(service, "default", SECRET_COLLECTION_NONE, nil, &error)
            guard let collection else { throw problem("no default collection", error) }
            return collection
        }

        private static func attributes(_ name: ItemName?) -> OpaquePointer? {
            let attributes = cs_secret_attributes()
            if let name {
                cs_secret_attribute(attributes, "service", name.service)
                cs_secret_attribute(attributes, "account", name.account)
            }
            return attributes
        }
    }

    /// Takes the error.
    private func problem(_ what: String, _ error: UnsafeMutablePointer<GError>?) -> VaultProblem {
        guard let error else { return .failed("Secret Service: \(what)") }
        defer { g_error_free(error) }
        return .failed("Secret Service: \(what): \(String(cString: error.pointee.message))")
    }
#endif
