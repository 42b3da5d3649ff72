import CountersignAuthority
import CountersignWire

extension SQLStore {
    package func nodes() throws(OperationalError) -> NodeRoster {
        guard case .server(let server) = backing else { return NodeRoster() }
        return try server.read(whenEmpty: NodeRoster()) { (database) throws(OperationalError) in
            try NodeRows.listing(in: database)
        }
    }
}

/// The table of the nodes and the numbers of the changes that they follow.
enum NodeRows {
    /// More than any deployment has.
    private static let most = 1_000
    /// Milliseconds after which a silent node is forgotten.
    private static let forgotten = 600_000
    /// The number of the lock under which nodes enter.
    private static let entryLock = 4_850_256

    static let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    private static let change = "session_change.number + generation.number"

    static func listing(in database: Database) throws(OperationalError) -> NodeRoster {
        let change = try database.integer("SELECT \(change) FROM session_change, generation") ?? 0
        return NodeRoster(change: change, nodes: try nodes(in: database))
    }

    static func nodes(in database: Database) throws(OperationalError) -> [Node] {
        try database.rows(
            """
            SELECT id, name, replay_guard, lease, \(now) - seen, applied, clock_offset, level,
                master_key, settings, refusal
            FROM node ORDER BY name, id LIMIT \(most)
            """
        ) {
            Node(
                id: $0.text(0), name: $0.text(1), replayGuard: $0.text(2), lease: $0.integer(3),
                silence: $0.integer(4), applied: $0.integer(5), clockOffset: $0.integer(6),
                level: $0.integer(7), masterKey: NodeMasterKey(text: $0.text(8)),
                settings: SharedSettings(text: $0.text(9)[...]), refusal: $0.text(10))
        }
    }

    /// Nodes enter one after the other, so that of two with different values the second sees the first.
    static func enter(
        _ node: Node, ofLevel level: Int64, in database: Database, unless differs: (Node) -> Bool
    ) throws(OperationalError) -> NodeEntry {
        try database.execute("SELECT pg_advisory_lock(\(entryLock))")
        let others = try nodes(in: database).filter { $0.id != node.id && $0.isLive && differs($0) }
        let entry: NodeEntry =
            others.isEmpty
            ? .entered(clock: try renew(node, ofLevel: level, in: database)) : .refused(others)
        try database.execute("SELECT pg_advisory_unlock(\(entryLock))")
        return entry
    }

    /// Replaces the earlier refusals of the same name, so that a service manager that starts the node again
    /// and again does not fill the table.
    static func list(refused node: Node, ofLevel level: Int64, in database: Database) throws(OperationalError)
    {
        try database.run("DELETE FROM node WHERE name = ? AND refusal <> ''", binding: .text(node.name))
        _ = try renew(node, ofLevel: level, in: database)
    }

    /// Returns the server's clock, in Unix milliseconds.
    static func renew(
        _ node: Node, ofLevel level: Int64, in database: Database
    ) throws(OperationalError) -> Int64 {
        let seen = try database.integer(
            """
            INSERT INTO node (id, name, replay_guard, lease, seen, applied, clock_offset, level, master_key,
                settings, refusal)
            VALUES (?, ?, ?, ?, \(now), ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET seen = excluded.seen, lease = excluded.lease,
                applied = excluded.applied, clock_offset = excluded.clock_offset,
                master_key = excluded.master_key, replay_guard = excluded.replay_guard,
                refusal = excluded.refusal
            RETURNING seen
            """, binding: .text(node.id), .text(node.name), .text(node.replayGuard), .integer(node.lease),
            .integer(node.applied), .integer(node.clockOffset), .integer(level),
            .text(node.masterKey?.text ?? ""), .text(node.settings.text), .text(node.refusal))
        guard let seen else {
            throw OperationalError(.failed, message: "\(database.path): the node's row was not written")
        }
        return seen
    }

    static func confirm(_ change: Int64, of node: Node, in database: Database) throws(OperationalError) {
        // A row that is gone is made anew with the next lease.
        try database.run(
            "UPDATE node SET applied = ? WHERE id = ?", binding: .integer(change), .text(node.id))
    }

    static func view(as node: Node, in database: Database) throws(OperationalError) -> NodeView {
        let views = try database.rows(
            """
            SELECT \(change), generation.number, others.number, others.confirmed,
                (SELECT number FROM layout)
            FROM session_change, generation, (
                SELECT count(*) AS number, min(applied) AS confirmed
                FROM node WHERE id <> ? AND refusal = '' AND \(now) - seen < lease) AS others
            """, binding: .text(node.id)
        ) {
            NodeView(
                change: $0.integer(0), generation: $0.integer(1), others: $0.integer(2),
                confirmed: $0.isNull(3) ? nil : $0.integer(3), level: $0.integer(4))
        }
        guard let view = views.first else {
            throw OperationalError(
                .failed, message: "\(database.path): the count of changes is gone; restore a backup")
        }
        return view
    }

    static func remove(_ node: Node, in database: Database) throws(OperationalError) {
        try database.run("DELETE FROM node WHERE id = ?", binding: .text(node.id))
    }

    static func forgetSilent(in database: Database) throws(OperationalError) {
        try database.run("DELETE FROM node WHERE \(now) - seen > lease + \(forgotten)")
    }
}

/// A node's connection: it listens to the notifications of the changes.
final class PostgreSQLNodeChannel: NodeChannel {
    private let address: PostgreSQLAddress
    private let layout: StoreLayout
    private var database: Database?
    private var renewals = 0

    /// Renewals between two looks for nodes that are to be forgotten.
    private static let forgetfulRenewals = 60

    private let drill: OutageDrill?

    init(
        to address: PostgreSQLAddress, layout: StoreLayout = .current,
        interruptedBy drill: OutageDrill? = nil
    ) {
        (self.address, self.layout, self.drill) = (address, layout, drill)
    }

    func wait(milliseconds: Int, alongside descriptor: Int32) throws(OperationalError) -> Bool {
        let isNew = database == nil
        return try use { (_, connection) throws(OperationalError) in
            if isNew { return true }
            return try connection.waitForNotification(milliseconds: milliseconds, alongside: descriptor)
        }
    }

    func enter(_ node: Node, unless differs: (Node) -> Bool) throws(OperationalError) -> NodeEntry {
        try use { (database, connection) throws(OperationalError) in
            connection.runLater("SET synchronous_commit = on")
            return try NodeRows.enter(node, ofLevel: layout.level, in: database, unless: differs)
        }
    }

    func list(refused node: Node) throws(OperationalError) {
        try use { (database, _) throws(OperationalError) in
            try NodeRows.list(refused: node, ofLevel: layout.level, in: database)
        }
    }

    func others(of node: Node) throws(OperationalError) -> [Node] {
        try use { (database, _) throws(OperationalError) in
            try NodeRows.nodes(in: database).filter { $0.id != node.id }
        }
    }

    func renew(_ node: Node) throws(OperationalError) -> Int64 {
        try use { (database, connection) throws(OperationalError) in
            // A node that was seen stays seen if the server is killed.
            connection.runLater("SET synchronous_commit = on")
            renewals += 1
            if (renewals - 1).isMultiple(of: PostgreSQLNodeChannel.forgetfulRenewals) {
                try NodeRows.forgetSilent(in: database)
            }
            return try NodeRows.renew(node, ofLevel: layout.level, in: database)
        }
    }

    func confirm(_ change: Int64, of node: Node) throws(OperationalError) {
        try use { (database, connection) throws(OperationalError) in
            // A confirmation that is lost is written again with the next lease.
            connection.runLater("SET synchronous_commit = off")
            try NodeRows.confirm(change, of: node, in: database)
        }
    }

    func look(as node: Node) throws(OperationalError) -> NodeView {
        try use { (database, _) throws(OperationalError) in try NodeRows.view(as: node, in: database) }
    }

    func remove(_ node: Node) throws(OperationalError) {
        try use { (database, _) throws(OperationalError) in try NodeRows.remove(node, in: database) }
    }

    /// A connection that has failed is not used again.
    private func use<Result>(
        _ body: (Database, PostgreSQLConnection) throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        do throws(OperationalError) {
            try drill?.requireOff(address.name)
            let database = try connected()
            guard case .postgreSQL(let connection) = database.driver else { preconditionFailure() }
            return try body(database, connection)
        } catch {
            database = nil
            throw error
        }
    }

    private func connected() throws(OperationalError) -> Database {
        if let database { return database }
        var patience = PostgreSQLConnection.Patience()
        (patience.statement, patience.answer) = (2_000, 2_500)
        let connection = try PostgreSQLConnection(to: address, patience: patience)
        try connection.execute("LISTEN countersign")
        let database = Database(connection)
        self.database = database
        return database
    }
}
