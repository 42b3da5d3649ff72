import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

/// Rows read as values. A row that is none of ours is damage, or a newer version's, and stops the reading.
enum Rows {
    static func revision(_ database: Database) throws(Fault) -> Int64 {
        try database.integer("SELECT number FROM revision") ?? 0
    }

    static func apps(_ database: Database) throws(Fault) -> [App] {
        var settings: [String: [String: StoredSetting]] = [:]
        let rows = try database.rows("SELECT app, name, text, sealed FROM app_setting") {
            ($0.text(0), $0.text(1), $0.isNull(2) ? StoredSetting.sealed($0.blob(3)) : .text($0.text(2)))
        }
        for (app, name, setting) in rows { settings[app, default: [:]][name] = setting }
        return try database.rows("SELECT name, created FROM app ORDER BY name") { (row) throws(Fault) in
            guard let name = AppName(row.text(0)) else { throw unreadable("app", row.text(0), database) }
            return App(name: name, created: row.integer(1), settings: settings[row.text(0)] ?? [:])
        }
    }

    static func releases(_ database: Database) throws(Fault) -> [Release] {
        var settings: [String: [String: String]] = [:]
        let rows = try database.rows("SELECT key_id, name, text FROM release_setting") {
            ($0.text(0), $0.text(1), $0.text(2))
        }
        for (id, name, text) in rows { settings[id, default: [:]][name] = text }
        let rollouts = try rollouts(database)
        return try database.rows(
            """
            SELECT key_id, app, platform, version, scheme, sealed_secret, created, retired_at, update_url,
                sealed_next_secret, warn_at, read_only_at
            FROM release ORDER BY app, platform, number
            """
        ) { (row) throws(Fault) in
            guard let id = KeyID(row.text(0)), let app = AppName(row.text(1)), let platform = Platform(row.text(2)),
                let version = Version(row.text(3)), let scheme = SchemeName(rawValue: row.text(4))
            else { throw unreadable("release", row.text(0), database) }
            var release = Release(
                id: id, app: app, platform: platform, version: version, scheme: scheme, sealedSecret: row.blob(5),
                created: row.integer(6),
                retirement: row.isNull(7) ? nil : ReleaseKey.Retirement(at: row.integer(7), updateURL: row.text(8)))
            release.retirement?.warnAt = row.isNull(10) ? nil : row.integer(10)
            release.retirement?.readOnlyAt = row.isNull(11) ? nil : row.integer(11)
            release.retirement?.rollout = rollouts[row.text(0)] ?? []
            release.sealedNextSecret = row.isNull(9) ? nil : row.blob(9)
            release.settings = settings[row.text(0)] ?? [:]
            return release
        }
    }

    static func unreadable(_ kind: String, _ name: String, _ database: Database) -> Fault {
        Fault(.unreachable, "\(database.path): \(kind) `\(name)`: a row that this build cannot read")
    }
}
