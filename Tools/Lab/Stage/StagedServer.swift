/// The server of a row, with the operations of the attacks: restart, loss of files, copy of the database.
package protocol StagedServer: Sendable {
    /// The port it listens on; ``Network`` relays its public port to it.
    var port: UInt16 { get }
    /// Copies the database: the paths of SQLite files, copied in a consistent state. Keys that are stored
    /// elsewhere are not included.
    func copyDatabase() async throws -> [String]
    /// Kills the process (`kill -9`), as a power failure does, and starts it again on the same port.
    func restart() async throws
    /// As ``restart()``, but deletes the file of seen requests in between. False if the server keeps none.
    func restartWithoutReplayFile() async throws -> Bool
    /// As ``restart()``, but puts the deleted file back in between.
    func restartRestoringReplayFile() async throws
    /// Starts a second node on the same data. Returns its port, or the reason why it refused to start.
    func startSecondNode() async throws -> SecondNodeOutcome
    /// Runs an operator's command, `["release", "retire", …]`, and returns its output. Throws if the server
    /// has no commands.
    @discardableResult
    func operate(_ words: [String], typing input: String) async throws(LabError) -> [UInt8]
    /// Retires the app version with this key.
    func retire(_ key: AppKey) async throws -> RetirementOutcome
    /// Reverses the retirement.
    func reinstate(_ key: AppKey) async throws
    /// The private key of the TLS certificate, in PEM. Nil without TLS.
    var tlsKey: String? { get }
    /// Stops the server for good.
    func stop() async
}

extension StagedServer {
    /// The same, with empty standard input.
    @discardableResult
    package func operate(_ words: [String]) async throws(LabError) -> [UInt8] {
        try await operate(words, typing: "")
    }

    /// Nothing was lost.
    package func restartRestoringReplayFile() async throws {}

    /// Most legacy servers do not distinguish app versions.
    package func retire(_ key: AppKey) async throws -> RetirementOutcome { .unsupported }

    /// Nothing was retired.
    package func reinstate(_ key: AppKey) async throws {}

    /// Reference servers have no commands.
    @discardableResult
    package func operate(_ words: [String], typing input: String) async throws(LabError) -> [UInt8] {
        throw LabError("this server has no `countersign \(words.joined(separator: " "))`")
    }
}

/// The outcome of retiring an app version.
package enum RetirementOutcome: Sendable {
    /// The server refuses the version from now on.
    case done
    /// The server does not distinguish versions.
    case unsupported
}

/// The outcome of starting a second node.
package enum SecondNodeOutcome: Sendable {
    case listens(on: UInt16)
    /// It refused to start, because each node would see only a part of the requests.
    case refusedToStart(String)
}
