#if os(Linux)
    import CSecret

    /// Calls to one service on D-Bus's system bus, and what it tells unasked. GLib's D-Bus, which the Secret Service needs anyway.
    final class SystemBus {
        private let connection: OpaquePointer
        private let service: String
        private let context: OpaquePointer?

        init(_ service: String) throws(VaultProblem) {
            self.service = service
            var error: UnsafeMutablePointer<GError>?
            guard let connection = g_bus_get_sync(G_BUS_TYPE_SYSTEM, nil, &error) else {
                throw SystemBus.problem("no system bus", error)
            }
            self.connection = connection
            g_dbus_connection_set_exit_on_close(connection, 0)
            context = g_main_context_new()
            g_main_context_push_thread_default(context)
        }

        deinit {
            g_main_context_pop_thread_default(context)
            g_main_context_unref(context)
            g_object_unref(UnsafeMutableRawPointer(connection))
        }

        /// A method that takes a text, or nothing.
        func call(_ path: String, _ interface: String, _ method: String, _ argument: String? = nil) throws(VaultProblem)
        {
            g_variant_unref(try answer(path, interface, method, argument))
        }

        /// A method that takes nothing and gives an object's path.
        func path(_ path: String, _ interface: String, _ method: String) throws(VaultProblem) -> String {
            let answer = try answer(path, interface, method, nil)
            defer { g_variant_unref(answer) }
            return try SystemBus.text(answer, 0, of: "o")
        }

        func listen(_ path: String, _ interface: String, _ signal: String) -> BusSignals {
            BusSignals(connection, context, service, path, interface, signal)
        }

        private func answer(
            _ path: String, _ interface: String, _ method: String, _ argument: String?
        ) throws(VaultProblem) -> OpaquePointer {
            var error: UnsafeMutablePointer<GError>?
            var arguments: [OpaquePointer?] = argument.map { [g_variant_new_string($0)] } ?? []
            let tuple = g_variant_new_tuple(&arguments, gsize(arguments.count))
            let answer = g_dbus_connection_call_sync(
                connection, service, path, interface, method, tuple, nil, G_DBUS_CALL_FLAGS_NONE, 10_000, nil, &error)
            guard let answer else { throw SystemBus.problem(method, error) }
            return answer
        }

        /// The text at `index` of a tuple; its type is looked at first, for GLib ends the program over a wrong one.
        static func text(_ tuple: OpaquePointer, _ index: Int, of type: String) throws(VaultProblem) -> String {
            guard g_variant_n_children(tuple) > index, let child = g_variant_get_child_value(tuple, gsize(index)) else {
                throw .failed("D-Bus: an answer without part \(index)")
            }
            defer { g_variant_unref(child) }
            guard String(cString: g_variant_get_type_string(child)) == type, let text = g_variant_get_string(child, nil)
            else {
                throw .failed("D-Bus: part \(index) of an answer is no `\(type)`")
            }
            return String(cString: text)
        }

        private static func problem(_ what: String, _ error: UnsafeMutablePointer<GError>?) -> VaultProblem {
            guard let error else { return .failed("D-Bus: \(what)") }
            defer { g_error_free(error) }
            return .failed("D-Bus: \(what): \(String(cString: error.pointee.message))")
        }
    }
#endif
