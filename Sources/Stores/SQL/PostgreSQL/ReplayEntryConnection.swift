import CPQ
import CountersignAuthority
import CountersignWire

/// A connection on which an event loop inserts the entries of admitted requests. It is opened on a thread
/// that may wait, and is then confined to the loop.
package final class ReplayEntryConnection: @unchecked Sendable {
    /// Entries of one minute of creation times.
    package struct Batch: Sendable {
        package let minute: Int64
        /// Of 16 bytes each, in ascending order, so that two batches of two nodes cannot wait for each other.
        package let names: [UInt8]

        package init(minute: Int64, names: [UInt8]) {
            self.minute = minute
            self.names = names
        }
    }

    /// What became of a batch.
    package struct Outcome: Sendable {
        /// Whether the tables have the epoch that the batch was sent for, and the server's clock is the
        /// node's.
        package let isCurrent: Bool
        /// The names that were absent.
        package let inserted: [UInt8]
    }

    private let connection: PostgreSQLConnection
    /// What the connection reaches, for as long as it lasts: a server changes its timeline when it is
    /// promoted, and a connection to a standby is refused.
    package let source: ReplayDataSet

    /// Waits for the server, within bounds.
    package init(to address: PostgreSQLAddress) throws(OperationalError) {
        connection = try PostgreSQLConnection(to: address, patience: ReplayEntryDatabase.patience)
        source = try ReplayEntryDatabase.source(on: connection)
    }

    package var descriptor: Int32 { connection.descriptor }
    package var isBroken: Bool { connection.isBroken }

    /// Sends the insertion of all batches, as one transaction, after the outcomes of those before have come.
    /// Returns whether the socket has taken everything.
    /// `now` is the node's clock, in whole Unix seconds.
    package func insert(
        _ batches: [Batch], epoch token: String, now: Int64, clockTolerance: Int64
    ) throws(OperationalError) -> Bool {
        let token = Array(token.utf8)
        return try connection.begin(
            batches.map { batch in
                let command = connection.command(ReplayEntryConnection.insertion(into: batch.minute))
                return (command, [.blob(batch.names), .blob(token), .integer(now), .integer(clockTolerance)])
            })
    }

    package func flush() throws(OperationalError) -> Bool { try connection.flush() }

    /// The outcomes, in the order of the batches, once all have come; nil before.
    package func takeOutcomes() throws(OperationalError) -> [Outcome]? {
        guard let results = try connection.takeResults() else { return nil }
        var outcomes: [Outcome] = []
        for result in results {
            guard result.count == 1 else { throw connection.lost("a result of an unknown form") }
            func value(_ column: Int32) -> PostgreSQLValue {
                PostgreSQLValue(result.functions, of: result.handle, row: 0, column: column)
            }
            outcomes.append(
                Outcome(
                    isCurrent: !value(0).isNull && value(0).integer == 1,
                    inserted: value(1).isNull ? [] : Array(value(1).bytes)))
        }
        return outcomes
    }

    /// The epoch is compared in the snapshot of the insertion.
    private static func insertion(into minute: Int64) -> String {
        """
        WITH fresh AS (
            INSERT INTO countersign_replay.m\(minute) (name)
            SELECT encode(substring(?1 FROM place FOR 16), 'hex')::uuid
            FROM generate_series(1, octet_length(?1), 16) AS place
            ON CONFLICT DO NOTHING RETURNING name
        )
        SELECT (SELECT epoch = ?2 FROM countersign_replay.state)
                AND abs(floor(extract(epoch FROM clock_timestamp()))::bigint - ?3) <= ?4,
            (SELECT string_agg(uuid_send(name), ''::bytea) FROM fresh)
        """
    }
}
