import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLiteStore {
    package func retire(
        _ id: KeyID, _ retirement: ReleaseKey.Retirement, recording draft: AuditDraft
    ) throws(Fault) -> Changed {
        try change(recording: draft) { (database) throws(Fault) in
            try SQLiteStore.set(retirement, of: id, in: database) ? .yes : .missing
        }
    }

    package func undoRetirement(of id: KeyID, recording draft: AuditDraft) throws(Fault) -> Changed {
        try change(recording: draft) { (database) throws(Fault) in
            let changed = try database.run(
                """
                UPDATE release SET retired_at = NULL, update_url = NULL, warn_at = NULL, read_only_at = NULL
                WHERE key_id = ? AND retired_at IS NOT NULL
                """, .text(id.description))
            try database.run("DELETE FROM release_rollout WHERE key_id = ?", .text(id.description))
            return changed == 1 ? .yes : .missing
        }
    }

    /// In the place of the one that it has; false where there is no such release.
    static func set(
        _ retirement: ReleaseKey.Retirement, of id: KeyID, in database: Database
    ) throws(Fault) -> Bool {
        let changed = try database.run(
            "UPDATE release SET retired_at = ?, update_url = ?, warn_at = ?, read_only_at = ? WHERE key_id = ?",
            .integer(retirement.at), .text(retirement.updateURL), .optional(retirement.warnAt),
            .optional(retirement.readOnlyAt), .text(id.description))
        guard changed == 1 else { return false }
        try database.run("DELETE FROM release_rollout WHERE key_id = ?", .text(id.description))
        for step in retirement.rollout {
            try database.run(
                "INSERT INTO release_rollout (key_id, since, percent) VALUES (?, ?, ?)",
                .text(id.description), .integer(step.since), .integer(Int64(step.percent)))
        }
        return true
    }
}

extension Rows {
    /// By the release's key id, each in the order of its steps.
    static func rollouts(_ database: Database) throws(Fault) -> [String: [ReleaseKey.RolloutStep]] {
        var rollouts: [String: [ReleaseKey.RolloutStep]] = [:]
        let rows = try database.rows("SELECT key_id, since, percent FROM release_rollout ORDER BY key_id, since") {
            ($0.text(0), ReleaseKey.RolloutStep(since: $0.integer(1), percent: Int($0.integer(2))))
        }
        for (id, step) in rows { rollouts[id, default: []].append(step) }
        return rollouts
    }
}
