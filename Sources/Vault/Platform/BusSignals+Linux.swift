#if os(Linux)
    import CSecret

    /// One signal of one object, as it comes: a text, and whether it is the last.
    final class BusSignals {
        private final class Queue {
            var signals: [(String, isLast: Bool)] = []
        }

        private let queue = Queue()
        private let connection: OpaquePointer
        private let context: OpaquePointer?
        private var subscription: guint = 0

        init(
            _ connection: OpaquePointer, _ context: OpaquePointer?, _ service: String, _ path: String,
            _ interface: String, _ signal: String
        ) {
            self.connection = connection
            self.context = context
            subscription = g_dbus_connection_signal_subscribe(
                connection, service, interface, signal, path, nil, G_DBUS_SIGNAL_FLAGS_NONE, BusSignals.receive,
                Unmanaged.passRetained(queue).toOpaque(),
                { data in if let data { Unmanaged<Queue>.fromOpaque(data).release() } })
        }

        deinit { g_dbus_connection_signal_unsubscribe(connection, subscription) }

        /// Nil where none has come yet. To be called on the thread that subscribed.
        func next() -> (String, isLast: Bool)? {
            while g_main_context_iteration(context, 0) != 0 {}
            return queue.signals.isEmpty ? nil : queue.signals.removeFirst()
        }

        private static let receive: GDBusSignalCallback = { _, _, _, _, _, parameters, data in
            guard let parameters, let data, g_variant_n_children(parameters) == 2,
                let text = try? SystemBus.text(parameters, 0, of: "s"),
                let last = g_variant_get_child_value(parameters, 1)
            else { return }
            defer { g_variant_unref(last) }
            guard String(cString: g_variant_get_type_string(last)) == "b" else { return }
            Unmanaged<Queue>.fromOpaque(data).takeUnretainedValue().signals.append(
                (text, g_variant_get_boolean(last) != 0))
        }
    }
#endif
