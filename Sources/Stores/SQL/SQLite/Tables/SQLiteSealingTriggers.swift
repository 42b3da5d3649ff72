extension SQLiteTables {
    /// Refuse values that are sealed under the former master key (``SealedColumns``).
    static let sealingTriggers = SealedColumns.all.flatMap { sealed in
        [sealed.triggerOnInsert, sealed.triggerOnUpdate]
    }

    /// The message by which ``SQLiteResultCode`` knows these triggers.
    static let formerKey = "sealed under the former master key"
}

extension SealedColumns {
    fileprivate var triggerOnInsert: String {
        let wrong = columns.map { isWrong("NEW.\($0)") }.joined(separator: " OR ")
        return """
            CREATE TRIGGER \(table)_insert_is_sealed BEFORE INSERT ON \(table)
            WHEN \(condition) AND (\(wrong))
            BEGIN SELECT RAISE(ABORT, '\(SQLiteTables.formerKey)'); END
            """
    }

    fileprivate var triggerOnUpdate: String {
        let had = columns.map { "coalesce(OLD.\($0), x'')" }.joined(separator: ", ")
        let wrong = columns.map { "(NEW.\($0) NOT IN (\(had)) AND \(isWrong("NEW.\($0)")))" }
            .joined(separator: " OR ")
        return """
            CREATE TRIGGER \(table)_update_is_sealed BEFORE UPDATE OF \(columns.joined(separator: ", ")) \
            ON \(table)
            WHEN \(condition) AND (\(wrong))
            BEGIN SELECT RAISE(ABORT, '\(SQLiteTables.formerKey)'); END
            """
    }

    /// Empty values are not sealed: an answer without a body.
    private func isWrong(_ column: String) -> String {
        "length(\(column)) > 0 AND substr(\(column), 1, 1) "
            + "IS NOT (SELECT value FROM meta WHERE name = 'seal-slot')"
    }
}
