import CountersignAuthority
import CountersignWire

extension SQLiteStore {
    package func value(of name: MetaName) throws(Fault) -> [UInt8]? {
        try read(whenEmpty: nil) { (database) throws(Fault) in try SQLiteStore.value(of: name, in: database) }
    }

    package func set(_ name: MetaName, to value: [UInt8]) throws(Fault) {
        try change { (database) throws(Fault) -> Void in try SQLiteStore.set(name, to: value, in: database) }
    }

    package func set(_ name: MetaName, to value: [UInt8], recording draft: AuditDraft) throws(Fault) {
        try change { (database) throws(Fault) -> Void in
            try SQLiteStore.set(name, to: value, in: database)
            try SQLiteStore.add(draft, to: database)
        }
    }

    package func exchange(
        _ name: MetaName, _ old: [UInt8]?, for new: [UInt8], with others: [(name: MetaName, value: [UInt8])]
    ) throws(Fault) -> [UInt8] {
        try change { (database) throws(Fault) in
            let current = try SQLiteStore.value(of: name, in: database)
            if let current, current != old { return current }
            try SQLiteStore.set(name, to: new, in: database)
            for other in others { try SQLiteStore.set(other.name, to: other.value, in: database) }
            return new
        }
    }

    package func claim(_ name: MetaName, _ value: [UInt8]) throws(Fault) -> [UInt8] {
        try change { (database) throws(Fault) in
            try database.run(
                "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
                .text(name.rawValue), .blob(value))
            return try SQLiteStore.value(of: name, in: database) ?? value
        }
    }

    static func set(_ name: MetaName, to value: [UInt8], in database: Database) throws(Fault) {
        try database.run(
            "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            .text(name.rawValue), .blob(value))
    }

    static func value(of name: MetaName, in database: Database) throws(Fault) -> [UInt8]? {
        try database.rows("SELECT value FROM meta WHERE name = ?", .text(name.rawValue)) { $0.blob(0) }.first
    }
}
