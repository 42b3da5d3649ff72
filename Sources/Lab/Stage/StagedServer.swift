/// The server of a row, with what happens to servers: they are restarted, they lose files, somebody copies their database.
package protocol StagedServer: Sendable {
    /// Where it listens; the ``Network`` leads its public port here.
    var port: UInt16 { get }
    /// Everything that a thief of the database has: paths of SQLite files, copied at a moment of rest. Without keys that are kept elsewhere.
    func stolenDatabase() async throws -> [String]
    /// Ends it as a power cut ends a process (`kill -9`), and starts it again on the same port.
    func restart() async throws
    /// As ``restart()``; between end and start the file of requests that were seen is lost. False where it keeps none.
    func restartWithoutReplayFile() async throws -> Bool
    /// As ``restart()``; the file that was lost is put back, and all is as it was.
    func restartWithReplayFileFound() async throws
    /// A second node on the same data; its port. Nil, with the reason noted, where the server refuses to run twice.
    func secondNode() async throws -> SecondNode
    /// Runs a command as its operator would: `["release", "retire", …]`. What it prints. Throws where there is no such operator.
    @discardableResult
    func operate(_ words: [String], typing input: String) async throws(StageFault) -> [UInt8]
    /// Sends the app version with this key away, as its operator would.
    func retire(_ key: AppKey) async throws -> Retiring
    /// Takes that back.
    func bringBack(_ key: AppKey) async throws
    /// The key of the TLS certificate, in PEM: what leaks one day. Nil without TLS.
    var tlsKey: String? { get }
    /// Ends it for good.
    func stop() async
}

extension StagedServer {
    /// The same, typing nothing.
    @discardableResult
    package func operate(_ words: [String]) async throws(StageFault) -> [UInt8] { try await operate(words, typing: "") }

    /// Nothing was lost.
    package func restartWithReplayFileFound() async throws {}

    /// Most servers of the field take every caller for the newest.
    package func retire(_ key: AppKey) async throws -> Retiring { .isNotKnownHere }

    /// Nothing was retired.
    package func bringBack(_ key: AppKey) async throws {}

    /// Servers of the field are not ours to operate.
    @discardableResult
    package func operate(_ words: [String], typing input: String) async throws(StageFault) -> [UInt8] {
        throw StageFault("this server has no `countersign \(words.joined(separator: " "))`")
    }
}

/// What came of retiring an app version.
package enum Retiring: Sendable {
    /// Its server sends it away from now on.
    case done
    /// The server does not know versions apart.
    case isNotKnownHere
}

/// What came of starting a second node.
package enum SecondNode: Sendable {
    case listens(on: UInt16)
    /// It would not start, for fear of seeing half of the requests.
    case refusedToStart(String)
}
