import CountersignAuthority

/// Where a store is. All programs, benchmarks and tests get their stores from here.
package enum StorePlace: Sendable, Equatable {
    /// An SQLite file.
    case sqlite(path: String)
    case postgreSQL(PostgreSQLAddress)

    /// Names the store; the first call opens it, and ``Store/prepare()`` creates it. `rows` may be given
    /// later, by ``RowAuthenticationStore/authenticate(by:)``.
    package func open(
        inspecting inspection: StoreInspection = .everyPage, authenticatingBy rows: RowAuthenticator? = nil
    ) -> any Store {
        switch self {
        case .sqlite(let path): SQLStore(path: path, inspecting: inspection, rows: rows)
        case .postgreSQL(let address): SQLStore(address, rows: rows)
        }
    }
}

/// How much of a store is checked when it is opened.
package enum StoreInspection: Sendable {
    /// Every page: a second for a million sessions.
    case everyPage
    /// Only the header. For another connection beside one that has checked every page.
    case header
}
