#if os(Linux)
    import CGIO

    /// GLib with GObject and GIO.
    typealias GIOLibrary = LoadedLibrary<cs_gio_functions>

    extension GIOLibrary {
        static let loaded = LazyLibrary { () throws(VaultError) in
            try load(
                [
                    "libglib-2.0.so.0": "libglib2.0-0", "libgobject-2.0.so.0": "libglib2.0-0",
                    "libgio-2.0.so.0": "libglib2.0-0",
                ], by: cs_gio_functions_resolve
            ).get()
        }

        /// Takes the error. `what` is the call that failed, for people.
        func vaultError(_ what: String, cause error: UnsafeMutablePointer<GError>?) -> VaultError {
            guard let error else { return .failed("D-Bus: \(what)") }
            defer { self.g_error_free(error) }
            return .failed("D-Bus: \(what): \(String(cString: error.pointee.message))")
        }
    }
#endif
