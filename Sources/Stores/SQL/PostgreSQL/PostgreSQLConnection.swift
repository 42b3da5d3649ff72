import CPQ
import CountersignSeal
import CountersignWire
import Glibc

/// One connection to a PostgreSQL server. Nothing that it does waits longer than a bound. Not safe to share
/// between threads; its owner keeps a lock.
///
/// It is in libpq's pipeline mode: commands that return nothing, such as the beginning of a transaction, are
/// sent with the next one that does, so that they cost no round trip.
final class PostgreSQLConnection {
    /// How long the server may take, in milliseconds. A statement is ended by the server, which is told
    /// ``statement``; the connection is given up after ``answer``, which is later, so that a server that
    /// works has ended the statement before.
    struct Patience {
        var connecting = 2_000
        var statement = 5_000
        var answer = 6_000
        /// For reads, which event loops may wait for.
        var reading = 2_000

        /// Limits in the same proportions.
        static func limiting(statementsTo milliseconds: Int) -> Patience {
            Patience(
                connecting: milliseconds * 2 / 5, statement: milliseconds, answer: milliseconds + 1_000,
                reading: milliseconds * 2 / 5)
        }
    }

    /// Libpq's codes. Source: libpq-fe.h.
    private enum Code {
        static let connectionOK: UInt32 = 0
        static let pollFailed: UInt32 = 0
        static let pollReading: UInt32 = 1
        static let pollOK: UInt32 = 3
        static let commandOK: UInt32 = 1
        static let rows: UInt32 = 2
        static let pipelineSync: UInt32 = 10
        static let pipelineAborted: UInt32 = 11
        static let idle: UInt32 = 0
        static let unknown: UInt32 = 4
        static let sqlState: Int32 = 0x43
        static let message: Int32 = 0x4D
    }

    private static let begin = PostgreSQLCommand("BEGIN ISOLATION LEVEL READ COMMITTED")
    private static let beginReadOnly = PostgreSQLCommand("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    /// The row is the lock of all transactions that change something, and its number counts them.
    private static let lock = PostgreSQLCommand(
        "UPDATE writing SET number = number + 1 RETURNING level, number")
    /// More than the number of texts in this module.
    private static let mostStatements = 256

    let name: String
    private let library: PostgreSQLLibrary
    let functions: UnsafePointer<cs_pq_functions>
    let handle: OpaquePointer
    private let patience: Patience
    /// Translated statements, by the stores' text.
    private var commands: [String: PostgreSQLCommand] = [:]
    /// The names of the prepared statements, by their text.
    private var names: [String: String] = [:]
    private var prepared = 0
    /// Sent before the next command that returns something.
    private var waiting: [String] = []
    /// Synchronisation points whose results were not read yet.
    private var unread = 0
    private var limit: Int
    private var arrival: Arrival?
    /// Whether the connection cannot be used any more.
    private(set) var isBroken = false
    /// Whether a transaction was begun and not ended, as the client knows it.
    private var isInside = false
    private var isWriting = false
    /// Transactions of this connection that have changed something.
    private(set) var ownTransactions: Int64 = 0
    /// The number of the last transaction that this connection has begun and that changes something.
    private(set) var lastTransaction: Int64 = 0
    /// Whether the last error was that a lock was not free in time.
    private(set) var wasContended = false
    /// The schema of this build.
    let layout: StoreLayout
    /// The level of the database's schema when this connection last verified it.
    var verifiedLevel: Int64?

    init(
        to address: PostgreSQLAddress, patience: Patience = Patience(), layout: StoreLayout = .current
    ) throws(OperationalError) {
        self.layout = layout
        library = try PostgreSQLLibrary.load()
        functions = library.functions
        name = address.name
        self.patience = patience
        limit = patience.connecting
        guard let handle = PostgreSQLConnection.start(address, by: functions) else {
            throw OperationalError(.unreachable, message: "\(address.name): no memory for a connection")
        }
        self.handle = handle
        _ = functions.pointee.PQsetNoticeProcessor(handle, { _, _ in }, nil)
        try connect()
        guard functions.pointee.PQserverVersion(handle) >= 150_000 else {
            throw OperationalError(
                .unreachable, message: "\(name): expected PostgreSQL 15 or later")
        }
        _ = functions.pointee.PQsetnonblocking(handle, 1)
        // Without statistics of tables of one row, the server would compile short statements for half a
        // second.
        try execute(
            """
            SET search_path = countersign;
            SET jit = off;
            SET statement_timeout = \(patience.statement);
            SET lock_timeout = \(patience.statement);
            SET idle_in_transaction_session_timeout = 30000;
            SET standard_conforming_strings = on;
            SET client_min_messages = warning;
            SELECT set_config('synchronous_commit', 'on', false)
                WHERE current_setting('synchronous_commit') IN ('off', 'local')
            """)
        guard functions.pointee.PQenterPipelineMode(handle) == 1 else { throw lost("no pipeline mode") }
        limit = patience.answer
        let fsync = try run(command("SELECT current_setting('fsync') = 'on'"), binding: [])
        guard PostgreSQLValue(functions, of: fsync.handle, row: 0, column: 0).integer == 1 else {
            throw OperationalError(
                .unreachable,
                message: "\(name): the server's fsync is off: it could lose acknowledged changes")
        }
    }

    deinit { functions.pointee.PQfinish(handle) }

    // MARK: Connecting

    private static func start(
        _ address: PostgreSQLAddress, by functions: UnsafePointer<cs_pq_functions>
    ) -> OpaquePointer? {
        var parameters = address.parameters
        parameters["host"] = address.host
        parameters["port"] = String(address.port)
        parameters["user"] = address.user
        parameters["dbname"] = address.database
        parameters["application_name"] = "countersign"
        parameters["client_encoding"] = "UTF8"
        parameters["target_session_attrs"] = "read-write"
        parameters["gssencmode"] = "disable"
        parameters["keepalives_idle"] = "5"
        parameters["keepalives_interval"] = "2"
        parameters["keepalives_count"] = "2"
        parameters["tcp_user_timeout"] = "6000"
        // SCRAM, bound to the TLS connection; a client with a certificate needs no password.
        if !address.isLocal, parameters["sslcert"] == nil { parameters["channel_binding"] = "require" }
        var strings: [UnsafeMutablePointer<CChar>?] = []
        defer { for string in strings { free(string) } }
        var names: [UnsafePointer<CChar>?] = []
        var values: [UnsafePointer<CChar>?] = []
        func add(_ name: String, value: UnsafeMutablePointer<CChar>?) {
            let copy = strdup(name)
            strings.append(copy)
            names.append(UnsafePointer(copy))
            values.append(UnsafePointer(value))
        }
        for (name, value) in parameters {
            let copy = strdup(value)
            strings.append(copy)
            add(name, value: copy)
        }
        guard let password = address.password else {
            return functions.pointee.PQconnectStartParams(names + [nil], values + [nil], 0)
        }
        return password.secret.withExposedBytes { bytes in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
            defer {
                explicit_bzero(copy, bytes.count)
                copy.deallocate()
            }
            for index in bytes.indices { copy[index] = CChar(bitPattern: bytes[index]) }
            copy[bytes.count] = 0
            add("password", value: copy)
            return functions.pointee.PQconnectStartParams(names + [nil], values + [nil], 0)
        }
    }

    private func connect() throws(OperationalError) {
        let end = PostgreSQLConnection.now + Int64(limit)
        var state = UInt32(2)
        while true {
            guard functions.pointee.PQstatus(handle) != 1, state != Code.pollFailed else {
                throw unconnected()
            }
            if state == Code.pollOK { return }
            try waitFor(state == Code.pollReading ? Int16(POLLIN) : Int16(POLLOUT), until: end)
            state = functions.pointee.PQconnectPoll(handle)
        }
    }

    private func unconnected() -> OperationalError {
        isBroken = true
        return OperationalError(.unreachable, message: "\(name): \(lastMessage)")
    }

    /// Libpq's messages name the host, user and database, and never the password.
    private var lastMessage: String {
        let text = functions.pointee.PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        let lines = text.split(separator: "\n").map { $0.drop { $0 == " " || $0 == "\t" } }
        return lines.isEmpty ? "the connection was lost" : lines.joined(separator: "; ")
    }

    // MARK: Commands

    func command(_ sql: String) -> PostgreSQLCommand {
        if let known = commands[sql] { return known }
        let command = PostgreSQLCommand(sql)
        if commands.count >= PostgreSQLConnection.mostStatements { commands = [:] }
        commands[sql] = command
        return command
    }

    /// Runs statements without values and rows.
    func execute(_ sql: String) throws(OperationalError) {
        try useSimpleProtocol { () throws(OperationalError) in
            guard functions.pointee.PQsendQuery(handle, sql) == 1 else { throw lost(lastMessage) }
            let end = PostgreSQLConnection.now + Int64(limit)
            var fault: OperationalError?
            while let result = try next(until: end) { fault = fault ?? self.fault(in: result) }
            if let fault { throw fault }
        }
    }

    /// Leaves the pipeline mode, which takes one statement at a time.
    private func useSimpleProtocol(
        _ body: () throws(OperationalError) -> Void
    ) throws(OperationalError) {
        if prepared > 0 || !waiting.isEmpty || unread > 0 { try finish() }
        let wasInPipeline = functions.pointee.PQexitPipelineMode(handle) == 1
        defer { if wasInPipeline { _ = functions.pointee.PQenterPipelineMode(handle) } }
        try body()
    }

    /// Runs one statement, after those that wait for it.
    func run(_ command: PostgreSQLCommand, binding values: [SQLValue]) throws(OperationalError)
        -> PostgreSQLResult
    {
        guard let result = try runTogether([(command, values)]) else {
            throw lost("the server has not answered")
        }
        return result
    }

    /// Runs statements one after the other, with one round trip for all; returns the last one's result. If
    /// one fails, those behind it have no effect.
    @discardableResult
    func runTogether(
        _ runs: [(command: PostgreSQLCommand, values: [SQLValue])]
    ) throws(OperationalError) -> PostgreSQLResult? {
        let fresh = try sendTogether(runs)
        do throws(OperationalError) {
            return try receive()
        } catch {
            // Whether these were prepared is not known.
            for sql in fresh { names[sql] = nil }
            throw error
        }
    }

    /// Returns the texts that are prepared with it.
    private func sendTogether(
        _ runs: [(command: PostgreSQLCommand, values: [SQLValue])]
    ) throws(OperationalError) -> [String] {
        guard !isBroken else { throw lost("the connection was lost") }
        var fresh: [String] = []
        if names.count >= PostgreSQLConnection.mostStatements, !isInside {
            names = [:]
            waiting.insert("DEALLOCATE ALL", at: 0)
        }
        for sql in waiting { try send(PostgreSQLCommand(sql), binding: [], noting: &fresh) }
        waiting = []
        for run in runs { try send(run.command, binding: run.values, noting: &fresh) }
        guard functions.pointee.PQpipelineSync(handle) == 1 else { throw lost(lastMessage) }
        unread += 1
        return fresh
    }

    /// Has the statement run before the next one that returns something.
    func runLater(_ sql: String) { waiting.append(sql) }

    private func finish() throws(OperationalError) { try runTogether([]) }

    private func send(
        _ command: PostgreSQLCommand, binding values: [SQLValue], noting fresh: inout [String]
    ) throws(OperationalError) {
        var name = names[command.sql]
        if name == nil {
            prepared += 1
            name = "s\(prepared)"
            let types = values.map { value -> UInt32 in
                switch value {
                case .null: 0
                case .integer: PostgreSQLValue.TypeID.int8
                case .text, .blob: PostgreSQLValue.TypeID.bytes
                }
            }
            guard
                functions.pointee.PQsendPrepare(handle, name, command.sql, Int32(types.count), types) == 1
            else { throw lost(lastMessage) }
            names[command.sql] = name
            fresh.append(command.sql)
        }
        var bytes: [UInt8] = []
        var places: [(start: Int, count: Int)?] = []
        for value in values {
            let start = bytes.count
            switch value {
            case .null:
                places.append(nil)
                continue
            case .integer(let number):
                withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
            case .text(let text): bytes += text.utf8
            case .blob(let blob): bytes += blob
            }
            places.append((start, bytes.count - start))
        }
        // So that the buffer of empty values alone has an address.
        bytes.append(0)
        let isSent = bytes.withUnsafeBytes { buffer in
            let base = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
            let starts = places.map { place in place.flatMap { place in base.map { $0 + place.start } } }
            return functions.pointee.PQsendQueryPrepared(
                handle, name, Int32(values.count), starts, places.map { Int32($0?.count ?? 0) },
                [Int32](repeating: 1, count: values.count), 1)
        }
        guard isSent == 1 else { throw lost(lastMessage) }
    }

    // MARK: Answers

    /// Reads up to the end of what was sent.
    private func receive() throws(OperationalError) -> PostgreSQLResult? {
        let end = PostgreSQLConnection.now + Int64(limit)
        var fault: OperationalError?
        var last: PostgreSQLResult?
        var empty = 0
        while unread > 0 {
            guard let result = try next(until: end) else {
                // Nothing stands between the results of two commands; but a connection that was lost has
                // nothing else.
                empty += 1
                guard empty < 3 else { throw lost(lastMessage) }
                continue
            }
            empty = 0
            switch functions.pointee.PQresultStatus(result.handle) {
            case Code.pipelineSync:
                unread -= 1
                // What was sent before and not waited for ends a transaction that has changed nothing.
                if unread > 0 { fault = nil }
            case Code.pipelineAborted: break
            case Code.commandOK, Code.rows: last = result
            default: fault = fault ?? self.fault(in: result)
            }
        }
        if let fault { throw fault }
        return last
    }

    /// The next result; nil between the results of two commands.
    private func next(until end: Int64) throws(OperationalError) -> PostgreSQLResult? {
        while true {
            let rest = functions.pointee.PQflush(handle)
            guard rest >= 0 else { throw lost(lastMessage) }
            guard functions.pointee.PQisBusy(handle) == 1 else { break }
            try waitFor(Int16(POLLIN) | (rest > 0 ? Int16(POLLOUT) : 0), until: end)
            guard functions.pointee.PQconsumeInput(handle) == 1 else { throw lost(lastMessage) }
        }
        return functions.pointee.PQgetResult(handle).map { PostgreSQLResult($0, of: library) }
    }

    private func waitFor(_ events: Int16, until end: Int64) throws(OperationalError) {
        while true {
            var descriptor = pollfd(fd: functions.pointee.PQsocket(handle), events: events, revents: 0)
            guard descriptor.fd >= 0 else { throw lost(lastMessage) }
            let left = end - PostgreSQLConnection.now
            guard left > 0 else { throw lost("the server has not answered in \(limit) ms") }
            let count = poll(&descriptor, 1, Int32(clamping: left))
            if count > 0 { return }
            guard count == 0 || errno == EINTR else { throw lost("the connection cannot be waited for") }
        }
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    func lost(_ reason: String) -> OperationalError {
        isBroken = true
        return OperationalError(.unreachable, message: "\(name): \(reason)")
    }

    /// Nil unless the result is an error. Only its primary message is taken: details may have values of rows.
    private func fault(in result: PostgreSQLResult) -> OperationalError? {
        switch functions.pointee.PQresultStatus(result.handle) {
        case Code.commandOK, Code.rows, Code.pipelineSync, Code.pipelineAborted: return nil
        default: break
        }
        func field(_ code: Int32) -> String? {
            functions.pointee.PQresultErrorField(result.handle, code).map { String(cString: $0) }
        }
        guard let state = field(Code.sqlState) else { return lost(lastMessage) }
        wasContended = state == "55P03" || state == "40P01"
        let message = field(Code.message) ?? "an error"
        let kind: OperationalError.Kind
        switch state {
        case "CS001":
            return OperationalError(
                .unreachable, message: "\(name): the master key is being replaced; nothing was changed")
        case "53100":
            return OperationalError(.unreachable, message: "\(name): the disk is full; nothing was changed")
        case "55P03", "57014":
            return OperationalError(
                .unreachable, message: "\(name): not done in \(patience.statement) ms; nothing was changed")
        case _ where ["08", "57"].contains(state.prefix(2)):
            isBroken = true
            kind = .unreachable
        case _ where ["25", "28", "40", "42", "53", "58"].contains(state.prefix(2)): kind = .unreachable
        default: kind = .failed
        }
        return OperationalError(kind, message: "\(name): \(message)")
    }

    /// Whether the server has not closed the connection, as far as this side knows.
    var isOpen: Bool {
        guard !isBroken else { return false }
        var descriptor = pollfd(fd: functions.pointee.PQsocket(handle), events: 0x2000, revents: 0)
        // `POLLRDHUP`, which does not import, `POLLERR` and `POLLHUP`.
        return poll(&descriptor, 1, 0) == 0
    }

    // MARK: Without waiting

    /// What has arrived of the statements that ``begin(_:)`` sent.
    private struct Arrival {
        var results: [PostgreSQLResult] = []
        var fault: OperationalError?
        var fresh: [String]
    }

    /// The connection's socket, which stays the same.
    var descriptor: Int32 { functions.pointee.PQsocket(handle) }

    /// Sends statements that are one transaction, and waits for nothing. Only after all others have ended,
    /// and ``takeResults()`` has returned theirs. Returns whether the socket has taken everything.
    func begin(
        _ runs: [(command: PostgreSQLCommand, values: [SQLValue])]
    ) throws(OperationalError) -> Bool {
        arrival = Arrival(fresh: try sendTogether(runs))
        return try flush()
    }

    /// Sends what the socket had no room for; returns whether it has taken everything.
    func flush() throws(OperationalError) -> Bool {
        let rest = functions.pointee.PQflush(handle)
        guard rest >= 0 else { throw lost(lastMessage) }
        return rest == 0
    }

    /// Reads what has arrived. Returns the statements' results once all are there, and nil before. If one has
    /// failed, none had an effect.
    func takeResults() throws(OperationalError) -> [PostgreSQLResult]? {
        guard !isBroken, functions.pointee.PQconsumeInput(handle) == 1 else { throw lost(lastMessage) }
        var empty = 0
        while unread > 0 {
            guard functions.pointee.PQisBusy(handle) == 0 else { return nil }
            guard let result = functions.pointee.PQgetResult(handle) else {
                empty += 1
                guard empty < 3 else { throw lost(lastMessage) }
                continue
            }
            empty = 0
            let taken = PostgreSQLResult(result, of: library)
            switch functions.pointee.PQresultStatus(result) {
            case Code.pipelineSync: unread -= 1
            case Code.pipelineAborted: break
            case Code.commandOK: break
            case Code.rows: arrival?.results.append(taken)
            default:
                let fault = self.fault(in: taken)
                if arrival?.fault == nil { arrival?.fault = fault }
            }
        }
        guard let arrival = arrival.take() else { return nil }
        guard let fault = arrival.fault else { return arrival.results }
        for sql in arrival.fresh { names[sql] = nil }
        throw fault
    }

    // MARK: Transactions

    /// Begins a transaction that waits until no other one is changing something. Returns the level of the
    /// schema, which stays until the end of the transaction.
    func beginWriting() throws(OperationalError) -> Int64 {
        limit = patience.answer
        isInside = true
        isWriting = true
        let result = try runTogether([(PostgreSQLConnection.begin, []), (PostgreSQLConnection.lock, [])])
        guard let result, result.count == 1 else {
            throw OperationalError(.failed, message: "\(name): the row of the lock is gone; restore a backup")
        }
        lastTransaction = PostgreSQLValue(functions, of: result.handle, row: 0, column: 1).integer
        return PostgreSQLValue(functions, of: result.handle, row: 0, column: 0).integer
    }

    /// The beginning is sent with the first statement.
    func beginReading() {
        limit = patience.reading
        isInside = true
        isWriting = false
        waiting.append(PostgreSQLConnection.beginReadOnly.sql)
    }

    /// The end of a transaction that has changed nothing is not waited for.
    func commit() throws(OperationalError) {
        isInside = false
        waiting.append("COMMIT")
        if isWriting {
            let result = try runTogether([])
            // A transaction that has failed before ends without an error, too, and without its changes.
            guard let result,
                functions.pointee.PQcmdStatus(result.handle).map({ String(cString: $0) }) == "COMMIT"
            else {
                throw OperationalError(
                    .failed, message: "\(name): the transaction failed; nothing was changed")
            }
            ownTransactions += 1
            return
        }
        // Nothing was read, so nothing was begun.
        guard waiting.first != PostgreSQLConnection.beginReadOnly.sql else {
            waiting = []
            return
        }
        try sendWithoutWaiting()
    }

    func rollBack() {
        isInside = false
        guard !isBroken else { return }
        // In a transaction that has failed, what waits would fail, too, and keep this from running.
        waiting = ["ROLLBACK"]
        if isWriting { try? finish() } else { try? sendWithoutWaiting() }
    }

    /// Undoes what was done since the savepoint `part`, before the next statement.
    func rollBackPart() {
        guard isInTransaction else { return }
        waiting += ["ROLLBACK TO part", "RELEASE part"]
    }

    private func sendWithoutWaiting() throws(OperationalError) {
        var fresh: [String] = []
        let commands = waiting
        waiting = []
        for sql in commands { try send(PostgreSQLCommand(sql), binding: [], noting: &fresh) }
        guard functions.pointee.PQpipelineSync(handle) == 1 else { throw lost(lastMessage) }
        unread += 1
        _ = functions.pointee.PQflush(handle)
    }

    /// Whether a transaction goes on, perhaps after an error within a savepoint.
    var isInTransaction: Bool { isInside && !isBroken }

    /// Begins a transaction whose statements may take long.
    func beginMigration() {
        limit = 600_000
        isInside = true
        isWriting = true
        waiting.append(PostgreSQLConnection.begin.sql)
    }
}
