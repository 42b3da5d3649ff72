import CountersignAuthority
import CountersignSQLite

/// Where apps, releases, keys, accounts and sessions are kept, as `--store` names it. This file is the only
/// one that lists the kinds of stores.
public enum StoreLocation: Sendable, Equatable {
    /// An SQLite file.
    case sqlite(path: String)

    /// The forms that ``init(text:)`` accepts, for messages.
    static let forms = "sqlite:PATH (this build has no PostgreSQL store)"

    static func `default`(in data: String) -> StoreLocation { .sqlite(path: "\(data)/countersign.db") }

    init?(text: String) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        let place = String(text[text.index(after: colon)...])
        switch text[..<colon] {
        case "sqlite" where !place.isEmpty: self = .sqlite(path: place)
        default: return nil
        }
    }

    var text: String {
        switch self {
        case .sqlite(let path): "sqlite:\(path)"
        }
    }

    /// The connection that the process opens first, and which checks the whole store.
    func open() -> any Store {
        switch self {
        case .sqlite(let path): SQLiteStore(path: path)
        }
    }

    /// One more connection, beside the one of ``open()``.
    func openAgain(authenticatingBy rows: RowAuthenticator) -> any Store {
        switch self {
        case .sqlite(let path): SQLiteStore(path: path, inspecting: .header, rows: rows)
        }
    }
}
