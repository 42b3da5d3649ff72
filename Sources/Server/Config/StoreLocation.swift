import CountersignAuthority
import CountersignSQL

/// Where apps, releases, keys, accounts and sessions are kept, as `--store` names it.
public struct StoreLocation: Sendable, Equatable {
    let place: StorePlace
    package var layout: StoreLayout = .current

    /// An SQLite file.
    public static func sqlite(path: String) -> StoreLocation { StoreLocation(place: .sqlite(path: path)) }

    /// The forms that ``init(text:)`` accepts, for messages.
    static let forms =
        "sqlite:PATH or postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?sslrootcert=FILE], with TLS "
        + "verified unless HOST is this machine"

    static func `default`(in data: String) -> StoreLocation { .sqlite(path: "\(data)/countersign.db") }

    private init(place: StorePlace) { self.place = place }

    init?(text: String) {
        if let address = PostgreSQLAddress(url: text) {
            place = .postgreSQL(address)
            return
        }
        guard let colon = text.firstIndex(of: ":") else { return nil }
        let path = String(text[text.index(after: colon)...])
        guard text[..<colon] == "sqlite", !path.isEmpty else { return nil }
        place = .sqlite(path: path)
    }

    /// Without a password.
    var text: String {
        switch place {
        case .sqlite(let path): "sqlite:\(path)"
        case .postgreSQL(let address): address.text
        }
    }

    /// The connection that the process opens first, and which checks the whole store; where `inspection` is
    /// concurrent, while it reads.
    func open(
        inspecting inspection: StoreInspection = .everyPage,
        acknowledging acknowledgement: ChangeAcknowledgement, interruptedBy drill: OutageDrill? = nil
    ) -> any Store {
        place.open(
            inspecting: inspection, acknowledging: acknowledgement, layout: layout, interruptedBy: drill)
    }

    /// A connection for a gateway that shares the store; nil if others cannot open it.
    func openChannel(interruptedBy drill: OutageDrill) -> (any NodeChannel)? {
        place.openChannel(layout: layout, interruptedBy: drill)
    }

    /// Nil unless it is a database of a server.
    var database: PostgreSQLAddress? { if case .postgreSQL(let address) = place { address } else { nil } }

    /// What logins share over several gateways; nil if others cannot open the store.
    func openLogins(
        authenticatingBy rows: RowAuthenticator, interruptedBy drill: OutageDrill
    ) -> (any SharedLoginStore)? {
        place.openLogins(authenticatingBy: rows, layout: layout, interruptedBy: drill)
    }

    /// Whether several machines can open it.
    var isShared: Bool { database != nil }

    /// One more connection, beside the one of ``open()``.
    func openAgain(
        authenticatingBy rows: RowAuthenticator, interruptedBy drill: OutageDrill
    ) -> any Store {
        place.open(
            inspecting: .header, authenticatingBy: rows, layout: layout, interruptedBy: drill)
    }

    var isFile: Bool { if case .sqlite = place { true } else { false } }

    /// The path of an SQLite database; nil for a database of a server.
    var file: String? { if case .sqlite(let path) = place { path } else { nil } }

    /// What copies the store; nil unless it is a file.
    var copy: StoreCopy? { StoreCopy(of: place) }

    /// Nil unless this is a file and `target` a database.
    func move(to target: StoreLocation, authenticatingBy rows: RowAuthenticator) -> StoreMove? {
        StoreMove(from: place, to: target.place, rows: rows)
    }
}
