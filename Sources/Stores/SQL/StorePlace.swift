import CountersignAuthority

/// Where a store is. All programs, benchmarks and tests get their stores from here.
package enum StorePlace: Sendable, Equatable {
    /// An SQLite file.
    case sqlite(path: String)
    case postgreSQL(PostgreSQLAddress)

    /// Names the store; the first call opens it, and ``Store/prepare()`` creates it. `rows` may be given
    /// later, by ``RowAuthenticationStore/authenticate(by:)``. `milliseconds` bounds each statement of a
    /// PostgreSQL database. While `drill` is on, each call fails as if the store were away.
    package func open(
        inspecting inspection: StoreInspection = .everyPage, authenticatingBy rows: RowAuthenticator? = nil,
        acknowledging acknowledgement: ChangeAcknowledgement = .durable, layout: StoreLayout = .current,
        limitingStatementsTo milliseconds: Int = 5_000, interruptedBy drill: OutageDrill? = nil
    ) -> any Store {
        switch self {
        case .sqlite(let path):
            SQLStore(
                path: path, inspecting: inspection, rows: rows, layout: layout, interruptedBy: drill)
        case .postgreSQL(let address):
            SQLStore(
                address, rows: rows, acknowledging: acknowledgement, layout: layout,
                limitingStatementsTo: milliseconds, interruptedBy: drill)
        }
    }
}

extension StorePlace {
    /// A connection for a gateway that shares the store with others; nil for a store that one machine alone
    /// can open.
    package func openChannel(
        layout: StoreLayout = .current, interruptedBy drill: OutageDrill? = nil
    ) -> (any NodeChannel)? {
        switch self {
        case .sqlite: nil
        case .postgreSQL(let address):
            PostgreSQLNodeChannel(to: address, layout: layout, interruptedBy: drill)
        }
    }

    /// Connections for the logins of a gateway that shares the store with others; nil for a store that one
    /// machine alone can open.
    package func openLogins(
        authenticatingBy rows: RowAuthenticator?, layout: StoreLayout = .current,
        interruptedBy drill: OutageDrill? = nil
    ) -> (any SharedLoginStore)? {
        switch self {
        case .sqlite: nil
        case .postgreSQL(let address):
            PostgreSQLLogins(address, rows: rows, layout: layout, interruptedBy: drill)
        }
    }
}

/// When a change counts as made.
package enum ChangeAcknowledgement: Sendable {
    /// Once it is durable. For a gateway, which waits for the others by itself.
    case durable
    /// Once every live gateway follows it, too.
    case followed
}

/// How much of a store is checked when it is opened.
package enum StoreInspection: Sendable {
    /// Every page: more than a second for a million sessions.
    case everyPage
    /// Every page, by a check that goes on while the store is read. The opener calls
    /// ``StorePageCheck/requireSound()`` before it uses what it has read.
    case concurrent(StorePageCheck)
    /// Only the header. For another connection beside one that checks every page.
    case header
}
