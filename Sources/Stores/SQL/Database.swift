import CountersignWire

/// One connection to a database, over the driver of its kind: the stores' statements are written once, in the
/// SQL that both kinds understand, with `?` for values. Not safe to share between threads; its owner keeps a
/// lock.
final class Database {
    enum Driver {
        case sqlite(SQLiteConnection)
        case postgreSQL(PostgreSQLConnection)
    }

    let driver: Driver
    /// What messages call the database: a path, or the name of a server and its database.
    let path: String
    let recorder = RowRecorder()

    /// Opens an SQLite file that exists.
    convenience init(path: String) throws(OperationalError) {
        self.init(try SQLiteConnection(path: path))
    }

    init(_ connection: SQLiteConnection) {
        driver = .sqlite(connection)
        path = connection.path
        recorder.defineFunctions(on: connection.handle)
    }

    init(_ connection: PostgreSQLConnection) {
        driver = .postgreSQL(connection)
        path = connection.name
    }

    /// Runs statements without values and rows.
    func execute(_ sql: String) throws(OperationalError) {
        switch driver {
        case .sqlite(let connection): try connection.execute(sql)
        case .postgreSQL(let connection): try connection.execute(sql)
        }
    }

    /// Runs one statement; returns the number of rows that it changed.
    @discardableResult
    func run(_ sql: String, binding values: SQLValue...) throws(OperationalError) -> Int {
        try run(sql, binding: values)
    }

    @discardableResult
    func run(_ sql: String, binding values: [SQLValue]) throws(OperationalError) -> Int {
        switch driver {
        case .sqlite(let connection):
            let statement = try connection.statement(sql, binding: values)
            while try statement.step() {}
            return connection.changedRows
        case .postgreSQL(let connection): return try result(of: sql, binding: values, on: connection).rows
        }
    }

    /// Runs a statement that changes exactly one row, named `row` in the error. The schema is the database's,
    /// and could turn the change into nothing without an error.
    func run(_ sql: String, changing row: String, binding values: [SQLValue]) throws(OperationalError) {
        guard try run(sql, binding: values) == 1 else {
            throw OperationalError(
                .failed,
                message: "\(path): \(row): a change had no effect; `countersign audit verify` tells more")
        }
    }

    func rows<Row>(
        _ sql: String, binding values: SQLValue...,
        read: (borrowing Statement) throws(OperationalError) -> Row
    ) throws(OperationalError) -> [Row] {
        try rows(sql, binding: values, read: read)
    }

    /// `capacity` is the number of rows to make room for.
    func rows<Row>(
        _ sql: String, binding values: [SQLValue], reserving capacity: Int = 0,
        read: (borrowing Statement) throws(OperationalError) -> Row
    ) throws(OperationalError) -> [Row] {
        var rows: [Row] = []
        rows.reserveCapacity(capacity)
        switch driver {
        case .sqlite(let connection):
            let statement = try connection.statement(sql, binding: values)
            while try statement.step() { rows.append(try read(statement)) }
        case .postgreSQL(let connection):
            let result = try result(of: sql, binding: values, on: connection)
            for place in 0..<result.count {
                rows.append(try read(Statement(row: place, of: result, verifiedBy: recorder)))
            }
        }
        return rows
    }

    /// The first column of the first row; nil without rows.
    func integer(_ sql: String, binding values: SQLValue...) throws(OperationalError) -> Int64? {
        try rows(sql, binding: values) { $0.integer(0) }.first
    }

    private func result(
        of sql: String, binding values: [SQLValue], on connection: PostgreSQLConnection
    ) throws(OperationalError) -> PostgreSQLResult {
        let command = connection.command(sql)
        // Rows that this transaction has written have no tags yet.
        if command.readsTags { try recorder.collect(in: self) }
        let result = try connection.run(command, binding: values)
        if command.writesTaggedRows { recorder.noteChanges() }
        return result
    }

    /// Applies all of `body` or none of it. No other transaction that changes something runs at the same
    /// time, whatever process it is of: a transaction that reads first and then writes is never refused
    /// half-way, and finds what it has read unchanged.
    func transaction<Result>(_ body: () throws(OperationalError) -> Result) throws(OperationalError) -> Result
    {
        switch driver {
        case .sqlite: try run("BEGIN IMMEDIATE")
        case .postgreSQL(let connection):
            do throws(OperationalError) {
                let level = try connection.beginWriting()
                if level != connection.verifiedLevel {
                    try connection.layout.verify(level, in: self, by: recorder.rows)
                    connection.verifiedLevel = level
                }
            } catch {
                // The transaction has begun, and has failed at the lock, or found a schema that this build
                // cannot use.
                connection.rollBack()
                throw error
            }
        }
        let result = try runTransaction(body)
        recorder.didCommit(transactions: lastTransaction)
        return result
    }

    /// The number of the last transaction that this connection has begun; 0 for a file.
    var lastTransaction: Int64 {
        if case .postgreSQL(let connection) = driver { connection.lastTransaction } else { 0 }
    }

    /// Several reads of one state of the database.
    func readTransaction<Result>(_ body: () throws(OperationalError) -> Result) throws(OperationalError)
        -> Result
    {
        switch driver {
        case .sqlite: try run("BEGIN DEFERRED")
        case .postgreSQL(let connection): connection.beginReading()
        }
        return try runTransaction(body)
    }

    private func runTransaction<Result>(_ body: () throws(OperationalError) -> Result)
        throws(OperationalError)
        -> Result
    {
        do {
            let result = try body()
            try recorder.flush(into: self)
            defer { recorder.keepChange() }
            switch driver {
            case .sqlite: try run("COMMIT")
            case .postgreSQL(let connection): try connection.commit()
            }
            return result
        } catch {
            recorder.reset()
            // Some errors have already rolled back, and this then fails; the first error is the one to
            // report.
            switch driver {
            case .sqlite(let connection): connection.rollBack()
            case .postgreSQL(let connection): connection.rollBack()
            }
            throw error
        }
    }

    /// The same within a transaction, which continues if `body` throws, unless the error has ended it
    /// (``isInTransaction``). Source: sqlite.org/lang_savepoint.html.
    func savepoint<Result>(_ body: () throws(OperationalError) -> Result) throws(OperationalError) -> Result {
        // If an error has ended the transaction, a savepoint would begin another, and its release would
        // commit it.
        guard isInTransaction else {
            throw OperationalError(
                .unreachable, message: "\(path): the transaction was lost; nothing was changed")
        }
        switch driver {
        case .sqlite: try run("SAVEPOINT part")
        case .postgreSQL(let connection): connection.runLater("SAVEPOINT part")
        }
        let recorded = recorder.pending
        do {
            let result = try body()
            switch driver {
            case .sqlite: try run("RELEASE part")
            case .postgreSQL(let connection): connection.runLater("RELEASE part")
            }
            return result
        } catch {
            recorder.restore(recorded)
            switch driver {
            case .sqlite(let connection): connection.rollBackPart()
            case .postgreSQL(let connection): connection.rollBackPart()
            }
            throw error
        }
    }

    /// False again if an error, such as a full disk, has rolled everything back.
    var isInTransaction: Bool {
        switch driver {
        case .sqlite(let connection): connection.isInTransaction
        case .postgreSQL(let connection): connection.isInTransaction
        }
    }

    /// A number that is the same as long as no other connection has changed the database.
    func changeMark() throws(OperationalError) -> Int64 {
        switch driver {
        case .sqlite: try integer("PRAGMA data_version") ?? 0
        case .postgreSQL(let connection):
            (try integer("SELECT number FROM writing") ?? 0) - connection.ownTransactions
        }
    }

    func hasTable(_ name: String) throws(OperationalError) -> Bool {
        switch driver {
        case .sqlite:
            try integer("SELECT 1 FROM sqlite_schema WHERE name = ?", binding: .text(name)) != nil
        case .postgreSQL:
            try integer(
                """
                SELECT 1 FROM pg_class WHERE relname = convert_from(?, 'UTF8') AND relkind = 'r'
                    AND relnamespace = to_regnamespace('countersign')
                """, binding: .text(name)) != nil
        }
    }
}

/// A value that a database stores.
enum SQLValue: Equatable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    static func optional(_ number: Int64?) -> SQLValue { number.map { .integer($0) } ?? .null }
    static func optional(_ text: String?) -> SQLValue { text.map { .text($0) } ?? .null }
    static func optional(_ bytes: [UInt8]?) -> SQLValue { bytes.map { .blob($0) } ?? .null }
}
