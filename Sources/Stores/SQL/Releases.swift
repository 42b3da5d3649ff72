import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLStore {
    package func apps() throws(OperationalError) -> [App] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in try ReleaseRows.apps(database) }
    }

    package func app(_ name: AppName) throws(OperationalError) -> App? {
        try apps().first { $0.name == name }
    }

    package func insert(_ app: App, recording draft: AuditDraft) throws(OperationalError) -> InsertOutcome {
        try change(recording: draft) { (database) throws(OperationalError) in
            let added = try database.run(
                "INSERT INTO app (name, created) VALUES (?, ?) ON CONFLICT DO NOTHING",
                binding: .text(app.name.description), .integer(app.created))
            guard added == 1 else { return .taken }
            for (name, setting) in app.settings {
                try SQLStore.set(name, to: setting, of: app.name, in: database)
            }
            return .yes
        }
    }

    package func change(
        _ app: AppName, applying changes: [(name: String, setting: StoredSetting?)],
        recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try change(recording: draft) { (database) throws(OperationalError) in
            let known = try database.integer(
                "SELECT 1 FROM app WHERE name = ?", binding: .text(app.description))
            guard known != nil else { return .missing }
            for (name, setting) in changes { try SQLStore.set(name, to: setting, of: app, in: database) }
            return .yes
        }
    }

    private static func set(
        _ name: String, to setting: StoredSetting?, of app: AppName, in database: Database
    ) throws(OperationalError) {
        let text: SQLValue
        let sealed: SQLValue
        switch setting {
        case nil:
            try database.run(
                "DELETE FROM app_setting WHERE app = ? AND name = ?", binding: .text(app.description),
                .text(name))
            return
        case .text(let value): (text, sealed) = (.text(value), .null)
        case .sealed(let value): (text, sealed) = (.null, .blob(value))
        }
        try database.run(
            """
            INSERT INTO app_setting (app, name, text, sealed) VALUES (?, ?, ?, ?)
            ON CONFLICT (app, name) DO UPDATE SET text = excluded.text, sealed = excluded.sealed
            """, binding: .text(app.description), .text(name), text, sealed)
    }

    package func releases(of app: AppName?) throws(OperationalError) -> [Release] {
        let all = try read(whenEmpty: []) { (database) throws(OperationalError) in
            try ReleaseRows.releases(database)
        }
        guard let app else { return all }
        return all.filter { $0.app == app }
    }

    package func release(_ id: KeyID) throws(OperationalError) -> Release? {
        try releases(of: nil).first { $0.id == id }
    }

    package func insert(_ release: Release, recording draft: AuditDraft) throws(OperationalError)
        -> InsertOutcome
    {
        try change(recording: draft) { (database) throws(OperationalError) in
            let added = try database.run(
                """
                INSERT INTO release
                    (key_id, app, platform, version, scheme, sealed_secret, created, sealed_next_secret)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
                """,
                binding: .text(release.id.description), .text(release.app.description),
                .text(release.platform.description),
                .text(release.version.description), .text(release.scheme.rawValue),
                .blob(release.sealedSecret),
                .integer(release.created), release.sealedNextSecret.map { .blob($0) } ?? .null)
            guard added == 1 else { return .taken }
            if let retirement = release.retirement {
                _ = try SQLStore.set(retirement, of: release.id, in: database)
            }
            for (name, text) in release.settings {
                try SQLStore.set(name, to: text, of: release.id, in: database)
            }
            return .yes
        }
    }
}

extension SQLStore {
    package func retire(
        _ id: KeyID, with retirement: AppRelease.Retirement, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try change(recording: draft) { (database) throws(OperationalError) in
            try SQLStore.set(retirement, of: id, in: database) ? .yes : .missing
        }
    }

    package func undoRetirement(of id: KeyID, recording draft: AuditDraft) throws(OperationalError)
        -> ChangeOutcome
    {
        try change(recording: draft) { (database) throws(OperationalError) in
            let changed = try database.run(
                """
                UPDATE release SET retired_at = NULL, update_url = NULL, warn_at = NULL, read_only_at = NULL
                WHERE key_id = ? AND retired_at IS NOT NULL
                """, binding: .text(id.description))
            try database.run("DELETE FROM release_rollout WHERE key_id = ?", binding: .text(id.description))
            return changed == 1 ? .yes : .missing
        }
    }

    /// Replaces the release's retirement; false if there is no such release.
    static func set(
        _ retirement: AppRelease.Retirement, of id: KeyID, in database: Database
    ) throws(OperationalError) -> Bool {
        let changed = try database.run(
            """
            UPDATE release SET retired_at = ?, update_url = ?, warn_at = ?, read_only_at = ?
            WHERE key_id = ?
            """,
            binding: .integer(retirement.at), .text(retirement.updateURL), .optional(retirement.warnAt),
            .optional(retirement.readOnlyAt), .text(id.description))
        guard changed == 1 else { return false }
        try database.run("DELETE FROM release_rollout WHERE key_id = ?", binding: .text(id.description))
        for step in retirement.rollout {
            try database.run(
                "INSERT INTO release_rollout (key_id, since, percent) VALUES (?, ?, ?)",
                binding: .text(id.description), .integer(step.since), .integer(Int64(step.percent)))
        }
        return true
    }
}

extension ReleaseRows {
    /// By the release's key id, the steps in order.
    static func rollouts(_ database: Database) throws(OperationalError) -> [String: [AppRelease.RolloutStep]]
    {
        var rollouts: [String: [AppRelease.RolloutStep]] = [:]
        let rows = try database.rows(
            "SELECT key_id, since, percent FROM release_rollout ORDER BY key_id, since"
        ) {
            ($0.text(0), AppRelease.RolloutStep(since: $0.integer(1), percent: Int($0.integer(2))))
        }
        for (id, step) in rows { rollouts[id, default: []].append(step) }
        return rollouts
    }
}

/// Reads rows as values. A row that cannot be read is damaged, or from a newer version, and the read
/// throws.
enum ReleaseRows {
    static func revision(_ database: Database) throws(OperationalError) -> Int64 {
        try database.integer("SELECT number FROM revision") ?? 0
    }

    static func apps(_ database: Database) throws(OperationalError) -> [App] {
        try SQLStore.requireAuthentic(.app, .appSetting, in: database)
        var settings: [String: [String: StoredSetting]] = [:]
        let rows = try database.rows("SELECT app, name, text, sealed FROM app_setting") {
            ($0.text(0), $0.text(1), $0.isNull(2) ? StoredSetting.sealed($0.blob(3)) : .text($0.text(2)))
        }
        for (app, name, setting) in rows { settings[app, default: [:]][name] = setting }
        return try database.rows("SELECT name, created FROM app ORDER BY name") {
            (row) throws(OperationalError) in
            guard let name = AppName(row.text(0)) else {
                throw unreadable("app", named: row.text(0), in: database)
            }
            return App(name: name, created: row.integer(1), settings: settings[row.text(0)] ?? [:])
        }
    }

    static func releases(_ database: Database) throws(OperationalError) -> [Release] {
        try SQLStore.requireAuthentic(.release, .releaseSetting, .releaseRollout, in: database)
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
        ) { (row) throws(OperationalError) in
            guard let id = KeyID(row.text(0)), let app = AppName(row.text(1)),
                let platform = Platform(row.text(2)),
                let version = Version(row.text(3)), let scheme = SchemeName(rawValue: row.text(4))
            else { throw unreadable("release", named: row.text(0), in: database) }
            var release = Release(
                id: id, app: app, platform: platform, version: version, scheme: scheme,
                sealedSecret: row.blob(5),
                created: row.integer(6),
                retirement: row.isNull(7)
                    ? nil : AppRelease.Retirement(at: row.integer(7), updateURL: row.text(8)))
            release.retirement?.warnAt = row.isNull(10) ? nil : row.integer(10)
            release.retirement?.readOnlyAt = row.isNull(11) ? nil : row.integer(11)
            release.retirement?.rollout = rollouts[row.text(0)] ?? []
            release.sealedNextSecret = row.isNull(9) ? nil : row.blob(9)
            release.settings = settings[row.text(0)] ?? [:]
            return release
        }
    }

    static func unreadable(_ kind: String, named name: String, in database: Database) -> OperationalError {
        OperationalError(
            .unreachable, message: "\(database.path): \(kind) `\(name)`: a row that this build cannot read")
    }
}
