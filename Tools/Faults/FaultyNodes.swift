import CountersignAuthority
import CountersignMemory
import CountersignSQL
import CountersignServer
import CountersignWire
import Glibc

/// Returns the result of a change to its caller before the transaction commits, half a second later.
struct HastyStoreWriter: StoreWriter {
    let writer: GroupWriter
    private static let microseconds: UInt32 = 500_000

    func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        let writer = writer
        let result: Swift.Result<Result, Refusal> = await withUnsafeContinuation { continuation in
            let caller = Locked<UnsafeContinuation<Swift.Result<Result, Refusal>, Never>?>(continuation)
            @Sendable func resume(_ result: Swift.Result<Result, Refusal>) {
                caller.with { caller in
                    defer { caller = nil }
                    return caller
                }?.resume(returning: result)
            }
            Task.detached {
                do throws(Refusal) {
                    try await writer.write { (store) throws(OperationalError) in
                        resume(.success(try change(store)))
                        usleep(HastyStoreWriter.microseconds)
                    }
                } catch {
                    resume(.failure(error))
                }
            }
        }
        return try result.get()
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void) {
        writer.writeLater(change)
    }
}

/// Waits for as long as it may, and hears nothing.
final class DeafNodeChannel: NodeChannel {
    private let inner: any NodeChannel

    init(_ inner: any NodeChannel) { self.inner = inner }

    func wait(milliseconds: Int, alongside descriptor: Int32) throws(OperationalError) -> Bool {
        let end = NodeLease.now + Int64(milliseconds)
        while true {
            let rest = Int(max(0, end - NodeLease.now))
            let isHinted = try inner.wait(milliseconds: rest, alongside: descriptor)
            var wake = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if !isHinted || NodeLease.now >= end || poll(&wake, 1, 0) > 0 { return false }
        }
    }

    func renew(_ node: Node) throws(OperationalError) -> Int64 { try inner.renew(node) }

    func enter(_ node: Node, unless differs: (Node) -> Bool) throws(OperationalError) -> NodeEntry {
        try inner.enter(node, unless: differs)
    }

    func list(refused node: Node) throws(OperationalError) { try inner.list(refused: node) }

    func others(of node: Node) throws(OperationalError) -> [Node] { try inner.others(of: node) }

    func confirm(_ change: Int64, of node: Node) throws(OperationalError) {
        try inner.confirm(change, of: node)
    }

    func look(as node: Node) throws(OperationalError) -> NodeView { try inner.look(as: node) }

    func remove(_ node: Node) throws(OperationalError) { try inner.remove(node) }
}

/// The layouts of builds that do not exist yet: with the ordinary build, a test has two builds for an
/// upgrade. `SchemaTests` shows the digests when a migration has changed them.
package enum LaterLayouts {
    /// One level more, whose migration changes a table that is in use.
    package static let expanded = StoreLayout.current.adding(
        "planted expansion", kind: .expanding(oldestLevel: StoreLayout.current.level),
        digests: ["session": "ee1709a5d6ddffb2", "planted": "3f66fc188b35544b"]
    ) {
        """
        ALTER TABLE session ADD COLUMN planted \($0.integer);
        CREATE TABLE planted (number \($0.integer) NOT NULL)\($0.rows);
        INSERT INTO planted VALUES (1);
        """
    }

    /// Two levels more, of which the second takes away what the first kept for earlier builds.
    package static let contracted = expanded.adding(
        "planted contraction", kind: .contracting,
        digests: [
            "session": StoreLayout.current.digest(of: "session"), "planted": "346f40c102a6cef0",
        ]
    ) { "ALTER TABLE planted ADD COLUMN more \($0.integer); ALTER TABLE session DROP COLUMN planted;" }
}
