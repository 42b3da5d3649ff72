/// Which data set a connection reaches. A change of either part means that writes may be missing that were
/// acknowledged.
package struct ReplayDataSet: Sendable, Equatable {
    /// Hexadecimal digits: of Redis, the random number of a start of the server (`run_id`); of PostgreSQL,
    /// the cluster's system identifier, which a restart keeps.
    package var server: String
    /// The same for each history of replication: `master_replid`, or the timeline. A promotion begins another
    /// one.
    package var history: String

    package init(server: String, history: String) {
        self.server = server
        self.history = history
    }

    /// Bounds what is stored.
    package static func isID(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy(isDigit)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
    }
}
