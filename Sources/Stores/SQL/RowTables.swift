import CountersignAuthority

extension AuthenticatedTable {
    /// The covered columns for SQL, each with `prefix`.
    func list(_ prefix: String = "") -> String { columns.map { prefix + $0 }.joined(separator: ", ") }

    /// Which rows are covered; nil for all. `prefix` stands before the column's name.
    func condition(_ prefix: String = "") -> String? {
        guard !names.isEmpty else { return nil }
        return "\(prefix)name IN (\(names.map { "'\($0)'" }.joined(separator: ", ")))"
    }

    /// The covered rows for `FROM`.
    var rows: String { name + (condition().map { " WHERE \($0)" } ?? "") }

    /// The rows of the group `?` for `FROM`. Of a table with row ids, the accounts' numbers are read from an
    /// index, which is much smaller than the table; an index that hides a row makes the sum another.
    var rowsOfGroup: String {
        guard let account else { return rows }
        let condition = "\(columns[account]) & \(RowDigest.groups - 1) = ?"
        guard key.count == 1 else { return "\(name) WHERE \(condition)" }
        return "\(name) WHERE \(key[0]) IN (SELECT \(key[0]) FROM \(name) WHERE \(condition))"
    }

    /// For a statement that reads rows: 1 where the row is authentic.
    var check: String { "cs_row_is_authentic(\(number), \(name).row_tag, \(list("\(name).")))" }

    /// Triggers that tag each row that is written, and collect the changes of the digest.
    var triggers: String {
        let row = key.map { "\($0) = NEW.\($0)" }.joined(separator: " AND ")
        let removal = "SELECT cs_row_removed(\(number), OLD.row_tag, \(list("OLD.")));"
        func tagging(_ function: String) -> String {
            "UPDATE \(name) SET row_tag = \(function)(\(number), \(list("NEW."))) WHERE \(row);"
        }
        let (new, old) = (condition("NEW.").map { "WHEN \($0)" }, condition("OLD.").map { "WHEN \($0)" })
        return """
            CREATE TEMP TRIGGER row_added_to_\(name) AFTER INSERT ON \(name) \(new ?? "") BEGIN
                \(tagging("cs_row_added"))
            END;
            CREATE TEMP TRIGGER row_changed_in_\(name) AFTER UPDATE OF \(list()) ON \(name) \(new ?? "") BEGIN
                \(removal)
                \(tagging("cs_row_changed"))
            END;
            CREATE TEMP TRIGGER row_removed_from_\(name) AFTER DELETE ON \(name) \(old ?? "") BEGIN
                \(removal)
            END;
            """
    }
}
