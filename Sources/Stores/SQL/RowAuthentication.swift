import CountersignAuthority
import CountersignWire

extension SQLStore {
    package func authenticate(by rows: RowAuthenticator) throws(OperationalError) {
        switch backing {
        case .file(let file): try file.authenticate(by: rows)
        case .server(let server): try server.authenticate(by: rows)
        case .transaction: break
        }
    }

    package func isEmpty() throws(OperationalError) -> Bool {
        // An empty store is begun anew: rows that damage hides must not count as absent.
        if case .file(let file) = backing { try file.inspect() }
        return try read(whenEmpty: true) { (database) throws(OperationalError) in
            try SQLStore.isEmpty(database)
        }
    }

    private static func isEmpty(_ database: Database) throws(OperationalError) -> Bool {
        for table in AuthenticatedTable.all.map(\.name) + ["audit"] {
            guard try database.hasTable(table) else { continue }
            // The schema has the first slot.
            let condition = table == AuthenticatedTable.meta.name ? " WHERE name <> 'seal-slot'" : ""
            guard try database.integer("SELECT 1 FROM \(table)\(condition) LIMIT 1") == nil else {
                return false
            }
        }
        return true
    }

    package func begin(
        with values: [(name: MetaName, value: [UInt8])], authenticatedBy rows: RowAuthenticator
    ) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            guard try SQLStore.value(of: .masterKeyCheck, in: database) == nil else { return }
            // The digests will treat every row as authentic.
            guard try SQLStore.isEmpty(database) else {
                throw OperationalError(
                    .failed,
                    message: "\(database.path): another program wrote rows while the store was made; "
                        + "expected an empty one")
            }
            for (name, value) in values { try SQLStore.set(name, to: value, in: database) }
            try database.recorder.beginDigests(by: rows, in: database)
        }
    }

    package func tagAllRows() throws(OperationalError) -> Int64 {
        try change { (database) throws(OperationalError) in try database.recorder.tagAll(in: database) }
    }

    package func changeMark() throws(OperationalError) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(OperationalError) in try database.changeMark() }
    }

    package func verifyRows() throws(OperationalError) -> RowVerification {
        try read(whenEmpty: RowVerification()) { (database) throws(OperationalError) in
            database.forgetPages()
            guard let found = try database.recorder.examine(AuthenticatedTable.all, in: database) else {
                throw OperationalError(.failed, message: "\(database.path): opened without the rows' key")
            }
            return found
        }
    }

    package func verifyGroup(
        ofAccount number: Int64, in tables: [AuthenticatedTable]
    ) throws(OperationalError) {
        try read(whenEmpty: ()) { (database) throws(OperationalError) in
            try database.recorder.requireGroup(ofAccount: number, of: tables, in: database)
        }
    }

    package func countRows() throws(OperationalError) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(OperationalError) in
            try database.recorder.countAll(in: database)
        }
    }

    package func verifyNames() throws(OperationalError) {
        try read(whenEmpty: ()) { (database) throws(OperationalError) in
            try SQLStore.requireAuthentic(.account, .erasedName, in: database)
        }
    }

    package func deleteUnverified(groups: [Int: Set<Int>]) throws(OperationalError) -> Int64 {
        try write { (database) throws(OperationalError) in
            var count: Int64 = 0
            // What is accepted is what the indices find, too. Throws if two rows have one unique key.
            for table in AuthenticatedTable.all { try database.buildIndices(of: table) }
            for table in AuthenticatedTable.deletedIfAltered {
                count += try database.recorder.deleteUnverified(of: table, in: database)
                for group in groups[table.number] ?? [] where table.refusesGroups {
                    count += Int64(
                        try database.run(
                            "DELETE FROM \(table.name) WHERE account % \(RowDigest.groups) = ?",
                            binding: .integer(Int64(group))))
                }
            }
            return count
        }
    }

    /// Throws unless every row of these tables is authentic and the rows add up to the tables' digests.
    static func requireAuthentic(_ tables: AuthenticatedTable..., in database: Database)
        throws(OperationalError)
    {
        guard let found = try database.recorder.examine(tables, in: database),
            let first = found.findings.first
        else { return }
        throw OperationalError(
            .failed, message: "\(database.path): \(first.text); `countersign audit verify` tells more")
    }

    /// Throws if a name might be free only because the row that holds it is missing.
    static func requireReservedNames(in database: Database) throws(OperationalError) {
        try database.recorder.requireReservedNames(in: database)
    }

    static func unbalanced(
        _ table: AuthenticatedTable, account: Int64, in database: Database
    ) -> OperationalError {
        OperationalError(
            .failed,
            message:
                "\(database.path): \(table.name): the rows of account \(account)'s group do not add up; "
                + "`countersign audit verify` tells more")
    }

    static func altered(_ table: AuthenticatedTable, row: String, in database: Database) -> OperationalError {
        OperationalError(
            .failed,
            message:
                "\(database.path): \(table.name) \(row): the row was altered, or its group does not add up; "
                + "`countersign audit verify` tells more")
    }
}
