import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLiteStore {
    package func apps() throws(Fault) -> [App] {
        try read(whenEmpty: []) { (database) throws(Fault) in try Rows.apps(database) }
    }

    package func app(_ name: AppName) throws(Fault) -> App? { try apps().first { $0.name == name } }

    package func insert(_ app: App, recording draft: AuditDraft) throws(Fault) -> Inserted {
        try change(recording: draft) { (database) throws(Fault) in
            let added = try database.run(
                "INSERT INTO app (name, created) VALUES (?, ?) ON CONFLICT DO NOTHING",
                .text(app.name.description), .integer(app.created))
            guard added == 1 else { return .taken }
            for (name, setting) in app.settings { try SQLiteStore.set(name, setting, of: app.name, in: database) }
            return .yes
        }
    }

    package func change(
        _ app: AppName, _ changes: [(name: String, setting: StoredSetting?)], recording draft: AuditDraft
    ) throws(Fault) -> Changed {
        try change(recording: draft) { (database) throws(Fault) in
            let known = try database.integer("SELECT 1 FROM app WHERE name = ?", .text(app.description))
            guard known != nil else { return .missing }
            for (name, setting) in changes { try SQLiteStore.set(name, setting, of: app, in: database) }
            return .yes
        }
    }

    private static func set(
        _ name: String, _ setting: StoredSetting?, of app: AppName, in database: Database
    ) throws(Fault) {
        let text: SQLValue
        let sealed: SQLValue
        switch setting {
        case nil:
            try database.run(
                "DELETE FROM app_setting WHERE app = ? AND name = ?", .text(app.description), .text(name))
            return
        case .text(let value): (text, sealed) = (.text(value), .null)
        case .sealed(let value): (text, sealed) = (.null, .blob(value))
        }
        try database.run(
            """
            INSERT INTO app_setting (app, name, text, sealed) VALUES (?, ?, ?, ?)
            ON CONFLICT (app, name) DO UPDATE SET text = excluded.text, sealed = excluded.sealed
            """, .text(app.description), .text(name), text, sealed)
    }

    package func releases(of app: AppName?) throws(Fault) -> [Release] {
        let all = try read(whenEmpty: []) { (database) throws(Fault) in try Rows.releases(database) }
        guard let app else { return all }
        return all.filter { $0.app == app }
    }

    package func release(_ id: KeyID) throws(Fault) -> Release? { try releases(of: nil).first { $0.id == id } }

    package func insert(_ release: Release, recording draft: AuditDraft) throws(Fault) -> Inserted {
        try change(recording: draft) { (database) throws(Fault) in
            let added = try database.run(
                """
                INSERT INTO release
                    (key_id, app, platform, version, scheme, sealed_secret, created, sealed_next_secret)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
                """,
                .text(release.id.description), .text(release.app.description), .text(release.platform.description),
                .text(release.version.description), .text(release.scheme.rawValue), .blob(release.sealedSecret),
                .integer(release.created), release.sealedNextSecret.map { .blob($0) } ?? .null)
            guard added == 1 else { return .taken }
            if let retirement = release.retirement { _ = try SQLiteStore.set(retirement, of: release.id, in: database) }
            for (name, text) in release.settings { try SQLiteStore.set(name, text, of: release.id, in: database) }
            return .yes
        }
    }
}
