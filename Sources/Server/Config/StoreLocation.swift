import CountersignAuthority
import CountersignSQL

/// Where apps, releases, keys, accounts and sessions are kept, as `--store` names it.
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

    private var place: StorePlace {
        switch self {
        case .sqlite(let path): .sqlite(path: path)
        }
    }

    /// The connection that the process opens first, and which checks the whole store.
    func open() -> any Store { place.open() }

    /// One more connection, beside the one of ``open()``.
    func openAgain(authenticatingBy rows: RowAuthenticator) -> any Store {
        place.open(inspecting: .header, authenticatingBy: rows)
    }
}
