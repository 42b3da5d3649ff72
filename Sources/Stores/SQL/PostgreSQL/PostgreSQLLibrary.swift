import CPQ
import CountersignMemory
import CountersignWire
import Glibc

/// libpq, loaded when a PostgreSQL store is first used, and never unloaded: a server with SQLite needs none
/// (docs/decisions/0063-libraries-loaded-when-used.md).
struct PostgreSQLLibrary: @unchecked Sendable {
    /// Written before it is shared, and never freed.
    let functions: UnsafePointer<cs_pq_functions>

    private static let loaded = Locked<PostgreSQLLibrary?>(nil)

    /// A failure is tried again at the next use: the package may have been installed meanwhile.
    static func load() throws(OperationalError) -> PostgreSQLLibrary {
        try loaded.with { (loaded) throws(OperationalError) in
            if let loaded { return loaded }
            guard let handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) else {
                let reason = dlerror().map { String(cString: $0) } ?? "libpq.so.5"
                throw OperationalError(.unreachable, message: "PostgreSQL: \(reason); install libpq5")
            }
            let functions = UnsafeMutablePointer<cs_pq_functions>.allocate(capacity: 1)
            let handles: [UnsafeMutableRawPointer?] = [handle]
            if let missing = cs_pq_functions_resolve(handles, 1, functions) {
                functions.deallocate()
                throw OperationalError(
                    .unreachable,
                    message:
                        "libpq.so.5: no function \(String(cString: missing)); expected version 14 or later")
            }
            let library = PostgreSQLLibrary(functions: UnsafePointer(functions))
            loaded = library
            return library
        }
    }
}
