import CountersignAuthority
import CountersignThreads
import CountersignWire
import Glibc

/// A database of a PostgreSQL server and a few connections to it, opened when they are needed. Safe to share:
/// a thread has a connection to itself for as long as a transaction lasts.
///
/// No call waits without a bound. After a connection has failed, calls fail at once for a while, so that
/// threads do not wait for the server one after the other.
final class PostgreSQLServer: Sendable {
    /// Transactions that run at once; more wait.
    private static let mostConnections = 4
    /// How long calls fail at once after one has failed, in milliseconds.
    private static let pause: Int64 = 250

    private struct State {
        var idle: [Database] = []
        var used = 0
        /// Raised by ``close()``: connections of before are not used again.
        var edition = 0
        /// Nil until ``authenticate(by:)``.
        var rows: RowAuthenticator?
        /// Whether the database is known to have a layout, which it then keeps.
        var isMade = false
        var failure: (error: OperationalError, until: Int64)?
    }

    private let address: PostgreSQLAddress
    private let layout: StoreLayout
    private let patience: PostgreSQLConnection.Patience
    private let drill: OutageDrill?
    private let state: Monitor<State>

    init(
        _ address: PostgreSQLAddress, rows: RowAuthenticator?, layout: StoreLayout = .current,
        limitingStatementsTo milliseconds: Int = 5_000, interruptedBy drill: OutageDrill? = nil
    ) {
        (self.address, self.layout, self.drill) = (address, layout, drill)
        patience = .limiting(statementsTo: milliseconds)
        var state = State()
        state.rows = rows
        self.state = Monitor(state)
    }

    /// Connections that are open are opened anew, and then verify by `rows`.
    func authenticate(by rows: RowAuthenticator) throws(OperationalError) {
        adopt(rows)
        try use { (database) throws(OperationalError) in try recordLevel(of: database, by: rows) }
    }

    private func adopt(_ rows: RowAuthenticator?) {
        state.with { state in
            if let rows { state.rows = rows }
            state.idle = []
            state.edition += 1
        }
    }

    func close() {
        state.with { state in
            state.idle = []
            state.edition += 1
            state.isMade = false
        }
    }

    // MARK: The schema

    func prepare(
        consenting consent: MigrationConsent, verifyingBy rows: RowAuthenticator?
    ) throws(OperationalError) -> SchemaOutcome {
        if let rows { adopt(rows) }
        return try use { (database) throws(OperationalError) in
            guard case .postgreSQL(let connection) = database.driver else { return SchemaOutcome() }
            let rows = state.with { $0.rows }
            let level = try database.schemaLevel()
            // A connection with `rows` has verified a later level; without, nothing can.
            if level > layout.level { try layout.verify(level, in: database, by: rows) }
            let migrator = PostgreSQLMigrator(layout: layout, rows: rows, consent: consent)
            let outcome =
                level < layout.level ? try migrator.run(on: database, by: connection) : SchemaOutcome()
            try database.recorder.start(by: rows, on: database)
            if let rows { try recordLevel(of: database, by: rows) }
            return outcome
        }
    }

    /// Leaves the record of this build's level, for builds of earlier levels, if the level has none: a new
    /// deployment has no key while its schema is made.
    private func recordLevel(of database: Database, by rows: RowAuthenticator) throws(OperationalError) {
        guard try database.schemaLevel() == layout.level, try StoreLayout.sealedRecord(in: database) == nil
        else { return }
        _ = try database.transaction { () throws(OperationalError) in
            try database.run(
                "UPDATE layout SET record = ? WHERE number = ? AND record IS NULL",
                binding: .blob(rows.seal(layout.record)), .integer(layout.level))
        }
    }

    func schemaPlan() throws(OperationalError) -> SchemaPlan {
        try use { (database) throws(OperationalError) in try layout.plan(in: database) }
    }

    /// Throws unless this build can use the schema that the database has by now. Connections are opened anew.
    func verifySchema() throws(OperationalError) {
        adopt(nil)
        try use { (database) throws(OperationalError) in
            try layout.verify(database.schemaLevel(), in: database, by: state.with { $0.rows })
        }
    }

    /// The result of `body`, which reads one state of the database; `empty` while it has no layout yet.
    func read<Result>(
        whenEmpty empty: Result, body: (Database) throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        try use { (database) throws(OperationalError) in
            // Another process may have made the layout since the connection was opened.
            try start(database, by: state.with { $0.rows })
            return try database.readTransaction { () throws(OperationalError) in
                guard try isMade(database) else { return empty }
                return try body(database)
            }
        }
    }

    /// Applies all changes of `body` or none; they are durable when this returns.
    func write<Result>(_ body: (Database) throws(OperationalError) -> Result) throws(OperationalError)
        -> Result
    {
        try use { (database) throws(OperationalError) in
            try start(database, by: state.with { $0.rows })
            guard try isMade(database) else {
                throw OperationalError(.unreachable, message: "\(address.name): no store there")
            }
            return try database.transaction { () throws(OperationalError) in try body(database) }
        }
    }

    private func isMade(_ database: Database) throws(OperationalError) -> Bool {
        if state.with({ $0.isMade }) { return true }
        guard try database.schemaLevel() > 0 else { return false }
        state.with { $0.isMade = true }
        return true
    }

    // MARK: Connections

    /// Uses a connection outside a transaction.
    func use<Result>(_ body: (Database) throws(OperationalError) -> Result) throws(OperationalError) -> Result
    {
        let (database, edition) = try take()
        do {
            let result = try body(database)
            giveBack(database, of: edition, after: nil)
            return result
        } catch {
            giveBack(database, of: edition, after: error)
            throw error
        }
    }

    private enum Turn {
        case idle(Database)
        case new(RowAuthenticator?)
        case refused(OperationalError)
    }

    private func take() throws(OperationalError) -> (Database, edition: Int) {
        try drill?.requireOff(address.name)
        try state.with({ $0.rows })?.head?.requireUsable()
        // A call waits for one of them as long as for its answer.
        let turn = state.wait(milliseconds: patience.answer) { state -> (Turn, Int)? in
            if let failure = state.failure, PostgreSQLServer.now < failure.until {
                return (.refused(failure.error), state.edition)
            }
            // The server may have been started anew.
            state.idle.removeAll { !PostgreSQLServer.isOpen($0) }
            if let database = state.idle.popLast() {
                state.used += 1
                return (.idle(database), state.edition)
            }
            guard state.used < PostgreSQLServer.mostConnections else { return nil }
            state.used += 1
            return (.new(state.rows), state.edition)
        }
        switch turn {
        case nil:
            throw OperationalError(
                .unreachable,
                message: "\(address.name): no connection was free in \(patience.answer) ms")
        case (.refused(let error), _)?: throw error
        case (.idle(let database), let edition)?: return (database, edition)
        case (.new(let rows), let edition)?:
            do {
                let database = Database(
                    try PostgreSQLConnection(to: address, patience: patience, layout: layout))
                try start(database, by: rows)
                return (database, edition)
            } catch {
                fail(error)
                throw error
            }
        }
    }

    /// Has the connection verify and tag rows. Does nothing while the database has no layout. Throws if
    /// it had one: a view in the table's place would otherwise leave rows unverified.
    ///
    /// Without `rows`, a database of another level is not verified: what is read of it are the values that
    /// lead to the key of its record, which are sealed themselves.
    private func start(_ database: Database, by rows: RowAuthenticator?) throws(OperationalError) {
        guard case .postgreSQL(let connection) = database.driver, !database.recorder.hasTriggers else {
            return
        }
        guard try database.hasTable("layout") else {
            guard state.with({ $0.isMade }) else { return }
            throw OperationalError(
                .failed,
                message: "\(address.name): its table `layout` was removed or replaced; restore a backup")
        }
        let level = try database.schemaLevel()
        if level == layout.level || (level > layout.level && rows != nil) {
            try layout.verify(level, in: database, by: rows)
            connection.verifiedLevel = level
        }
        try database.recorder.start(by: rows, on: database)
    }

    /// Writes a value by a connection of its own, which does not verify the store: it is behind.
    func report(_ head: [UInt8]) throws(OperationalError) {
        let connection = try PostgreSQLConnection(to: address, patience: patience, layout: layout)
        try Database(connection).run(
            """
            INSERT INTO meta (name, value) VALUES (?, ?)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
            """, binding: .text(MetaName.reportedHead.rawValue), .blob(head))
    }

    private static func isOpen(_ database: Database) -> Bool {
        if case .postgreSQL(let connection) = database.driver { connection.isOpen } else { false }
    }

    private func giveBack(_ database: Database, of edition: Int, after error: OperationalError?) {
        var isBroken = true
        if case .postgreSQL(let connection) = database.driver { isBroken = connection.isBroken }
        if isBroken, let error { return fail(error) }
        state.with { state in
            state.used -= 1
            if !isBroken, state.edition == edition { state.idle.append(database) }
        }
        state.wakeOne()
    }

    /// The idle connections are probably as broken as this one.
    private func fail(_ error: OperationalError) {
        state.with { state in
            state.used -= 1
            state.idle = []
            if error.kind == .unreachable {
                state.failure = (error, PostgreSQLServer.now + PostgreSQLServer.pause)
            }
        }
        state.wakeAll()
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
