#if os(Linux)
    import CountersignSeal
    import Glibc

    /// The functions of libraries that are loaded when they are first used, and stay loaded: a program that
    /// never uses them starts without them (docs/decisions/0063-libraries-loaded-when-used.md). `Functions`
    /// is a struct that a shim in `Sources/C` defines by `CS_FUNCTIONS`.
    @dynamicMemberLookup
    struct LoadedLibrary<Functions>: @unchecked Sendable {
        typealias Resolver = (
            UnsafePointer<UnsafeMutableRawPointer?>?, Int, UnsafeMutablePointer<Functions>?
        ) -> UnsafePointer<CChar>?

        /// Written before it is shared, and never freed.
        let functions: UnsafePointer<Functions>

        /// `files` are the libraries' names for the dynamic linker, with the version of their ABI, and
        /// Debian's package of each, for people.
        static func load(
            _ files: KeyValuePairs<String, String>, by resolve: Resolver
        ) -> Result<LoadedLibrary, VaultError> {
            var handles: [UnsafeMutableRawPointer?] = []
            for (file, package) in files {
                // Never unloaded, not even where a later library is missing: GLib cannot be.
                guard let handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) else {
                    let reason = dlerror().map { String(cString: $0) } ?? file
                    return .failure(.failed("\(reason); install \(package)"))
                }
                handles.append(handle)
            }
            let functions = UnsafeMutablePointer<Functions>.allocate(capacity: 1)
            if let missing = resolve(handles, handles.count, functions) {
                functions.deallocate()
                let names = files.map(\.key).joined(separator: ", ")
                return .failure(.failed("\(names): no function \(String(cString: missing)); another version"))
            }
            return .success(LoadedLibrary(functions: UnsafePointer(functions)))
        }

        subscript<Function>(dynamicMember function: KeyPath<Functions, Function>) -> Function {
            functions.pointee[keyPath: function]
        }
    }

    /// Libraries that are loaded at their first use. A failure is tried again at the next: descriptors may
    /// have been used up, or the package may have been installed meanwhile.
    final class LazyLibrary<Library: Sendable>: Sendable {
        private let load: @Sendable () throws(VaultError) -> Library
        private let loaded = Locked<Library?>(nil)

        init(_ load: @escaping @Sendable () throws(VaultError) -> Library) { self.load = load }

        func get() throws(VaultError) -> Library {
            try loaded.with { (loaded) throws(VaultError) in
                if let loaded { return loaded }
                let library = try load()
                loaded = library
                return library
            }
        }
    }

    extension VaultError {
        /// For people.
        var detail: String {
            switch self {
            case .badName(let detail), .locked(let detail), .failed(let detail): detail
            case .changed: "changed meanwhile"
            }
        }
    }
#endif
