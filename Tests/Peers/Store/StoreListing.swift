import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignWire

/// What a database holds, a line each.
struct StoreListing {
    private let store: any Store

    init(database: String) { store = StorePlace.named(database).open() }

    func write() throws(OperationalError) {
        for app in try store.apps() {
            var last: Int64 = 0
            while case let page = try store.accounts(of: app.name, after: last, limit: 1_000),
                let end = page.last
            {
                for account in page { Line.out("account \(account.name) \(account.state.rawValue)") }
                last = end.number
            }
        }
        var last: Int64 = 0
        while case let page = try store.sessions(changedAfter: last, limit: 1_000), let end = page.last {
            for session in page { Line.out("session \(session.id) \(session.state) \(session.epoch)") }
            last = end.change
        }
    }
}

extension StoredSession {
    fileprivate var state: String { end?.reason.rawValue ?? "live" }

    fileprivate var epoch: UInt32 { if case .device(let device) = credentials { device.epoch } else { 0 } }
}

extension StorePlace {
    /// A path, or the URL of a PostgreSQL database.
    static func named(_ database: String) -> StorePlace {
        PostgreSQLAddress(url: database).map { .postgreSQL($0) } ?? .sqlite(path: database)
    }
}
