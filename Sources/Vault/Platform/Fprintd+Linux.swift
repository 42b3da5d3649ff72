#if os(Linux)
    import CGIO
    import Glibc

    /// The machine's fingerprint reader. fprintd holds the enrolled prints and compares them. Source:
    /// fprintd's D-Bus interface `net.reactivated.Fprint`.
    package struct FprintdReader: FingerprintReader {
        private static let manager = "/net/reactivated/Fprint/Manager"
        private let user: String

        /// `user` is the user whose fingers are accepted; empty for the user of this process.
        package init(user: String = "") { self.user = user }

        package func verify(within patience: Duration) -> FingerprintVerdict {
            let bus: SystemBus
            do {
                bus = try SystemBus("net.reactivated.Fprint")
            } catch {
                return .unavailable("\(error)")
            }
            do {
                let device = try bus.objectPath(
                    path: FprintdReader.manager, interface: "net.reactivated.Fprint.Manager",
                    method: "GetDefaultDevice")
                return try verify(on: bus, device: device, within: patience)
            } catch {
                return .unavailable("\(error)")
            }
        }

        private func verify(
            on bus: SystemBus, device: String, within patience: Duration
        ) throws(VaultError) -> FingerprintVerdict {
            let interface = "net.reactivated.Fprint.Device"
            try bus.call(path: device, interface: interface, method: "Claim", argument: user)
            defer { try? bus.call(path: device, interface: interface, method: "Release") }
            // Subscribe before the verification starts: a finger that is already on the reader is reported at
            // once.
            let signals = bus.signals(path: device, interface: interface, signal: "VerifyStatus")
            try bus.call(path: device, interface: interface, method: "VerifyStart", argument: "any")
            defer { try? bus.call(path: device, interface: interface, method: "VerifyStop") }
            let end = ContinuousClock.now + patience
            while ContinuousClock.now < end {
                guard let (result, isDone) = signals.next() else {
                    usleep(10_000)
                    continue
                }
                switch result {
                case "verify-match": return .match
                case "verify-no-match": return .noMatch
                default: if isDone { return .unavailable("fprintd: \(result)") }
                }
            }
            return .unavailable("no finger came")
        }
    }

    /// Calls to one service on D-Bus's system bus, and its signals, by GLib's D-Bus.
    final class SystemBus {
        private let gio: GIOLibrary
        private let connection: OpaquePointer
        private let service: String
        private let context: OpaquePointer?

        init(_ service: String) throws(VaultError) {
            gio = try GIOLibrary.loaded.get()
            self.service = service
            var error: UnsafeMutablePointer<GError>?
            guard let connection = gio.g_bus_get_sync(G_BUS_TYPE_SYSTEM, nil, &error) else {
                throw gio.vaultError("no system bus", cause: error)
            }
            self.connection = connection
            gio.g_dbus_connection_set_exit_on_close(connection, 0)
            context = gio.g_main_context_new()
            gio.g_main_context_push_thread_default(context)
        }

        deinit {
            gio.g_main_context_pop_thread_default(context)
            gio.g_main_context_unref(context)
            gio.g_object_unref(UnsafeMutableRawPointer(connection))
        }

        /// A method that takes a text, or nothing.
        func call(path: String, interface: String, method: String, argument: String? = nil) throws(VaultError)
        {
            gio.g_variant_unref(
                try reply(path: path, interface: interface, method: method, argument: argument))
        }

        /// A method that takes nothing and gives an object's path.
        func objectPath(path: String, interface: String, method: String) throws(VaultError) -> String {
            let answer = try reply(path: path, interface: interface, method: method, argument: nil)
            defer { gio.g_variant_unref(answer) }
            return try gio.text(in: answer, at: 0, of: "o")
        }

        func signals(path: String, interface: String, signal: String) -> BusSignals {
            BusSignals(
                gio: gio, connection: connection, context: context, service: service, path: path,
                interface: interface, signal: signal)
        }

        private func reply(
            path: String, interface: String, method: String, argument: String?
        ) throws(VaultError) -> OpaquePointer {
            var error: UnsafeMutablePointer<GError>?
            var arguments: [OpaquePointer?] = argument.map { [gio.g_variant_new_string($0)] } ?? []
            let tuple = gio.g_variant_new_tuple(&arguments, UInt(arguments.count))
            let answer = gio.g_dbus_connection_call_sync(
                connection, service, path, interface, method, tuple, nil, G_DBUS_CALL_FLAGS_NONE, 10_000, nil,
                &error)
            guard let answer else { throw gio.vaultError(method, cause: error) }
            return answer
        }
    }

    extension GIOLibrary {
        /// The text at `index` of a tuple. The type is checked first, because GLib ends the program over a
        /// wrong one.
        func text(in tuple: OpaquePointer, at index: Int, of type: String) throws(VaultError) -> String {
            guard self.g_variant_n_children(tuple) > index,
                let child = self.g_variant_get_child_value(tuple, UInt(index))
            else {
                throw .failed("D-Bus: an answer without part \(index)")
            }
            defer { self.g_variant_unref(child) }
            guard hasType(type, of: child), let text = self.g_variant_get_string(child, nil)
            else {
                throw .failed("D-Bus: part \(index) of an answer is no `\(type)`")
            }
            return String(cString: text)
        }

        func hasType(_ type: String, of value: OpaquePointer) -> Bool {
            self.g_variant_get_type_string(value).map { String(cString: $0) } == type
        }
    }

    /// One signal of one object, as it comes: a text, and whether it is the last.
    final class BusSignals {
        private final class Queue {
            let gio: GIOLibrary
            var signals: [(String, isLast: Bool)] = []

            init(_ gio: GIOLibrary) { self.gio = gio }
        }

        private let queue: Queue
        private let connection: OpaquePointer
        private let context: OpaquePointer?
        private var subscription: UInt32 = 0

        init(
            gio: GIOLibrary, connection: OpaquePointer, context: OpaquePointer?, service: String,
            path: String, interface: String, signal: String
        ) {
            queue = Queue(gio)
            self.connection = connection
            self.context = context
            subscription = gio.g_dbus_connection_signal_subscribe(
                connection, service, interface, signal, path, nil, G_DBUS_SIGNAL_FLAGS_NONE,
                BusSignals.receive,
                Unmanaged.passRetained(queue).toOpaque(),
                { data in if let data { Unmanaged<Queue>.fromOpaque(data).release() } })
        }

        deinit { queue.gio.g_dbus_connection_signal_unsubscribe(connection, subscription) }

        /// Nil where none has come yet. To be called on the thread that subscribed.
        func next() -> (String, isLast: Bool)? {
            while queue.gio.g_main_context_iteration(context, 0) != 0 {}
            return queue.signals.isEmpty ? nil : queue.signals.removeFirst()
        }

        private static let receive: GDBusSignalCallback = { _, _, _, _, _, parameters, data in
            guard let parameters, let data else { return }
            let queue = Unmanaged<Queue>.fromOpaque(data).takeUnretainedValue()
            let gio = queue.gio
            guard gio.g_variant_n_children(parameters) == 2,
                let text = try? gio.text(in: parameters, at: 0, of: "s"),
                let last = gio.g_variant_get_child_value(parameters, 1)
            else { return }
            defer { gio.g_variant_unref(last) }
            guard gio.hasType("b", of: last) else { return }
            queue.signals.append((text, gio.g_variant_get_boolean(last) != 0))
        }
    }
#endif
