import CountersignSeal
import CountersignVault
import CountersignWire
import Synchronization

@testable import CountersignClient
import CountersignTransport

/// A process that can be killed between any two of its steps: nothing of it is sent or written any more.
final class FakeProcess: Sendable {
    enum Moment: Sendable { case before, after }

    private struct Life {
        var isOver = false
        /// Writes until the end, and on which side of the last one it comes.
        var end: (writes: Int, moment: Moment)?
    }

    private let life = Mutex(Life())
    let number: Int

    init(_ number: Int) { self.number = number }

    var isOver: Bool { life.withLock { $0.isOver } }

    func kill() { life.withLock { $0.isOver = true } }

    func kill(_ moment: Moment, write: Int) { life.withLock { $0.end = (write, moment) } }

    /// Cancels a planned end whose write did not occur.
    func spare() { life.withLock { $0.end = nil } }

    fileprivate enum Fate { case lives, diesBefore, diesAfter }

    fileprivate func write() -> Fate {
        life.withLock { life in
            if life.isOver { return .diesBefore }
            guard let end = life.end else { return .lives }
            guard end.writes <= 0 else {
                life.end = (end.writes - 1, end.moment)
                return .lives
            }
            life.isOver = true
            return end.moment == .before ? .diesBefore : .diesAfter
        }
    }
}

/// The vault as a process has it.
private struct MortalStore: ItemStore {
    let store: MemoryVault
    let process: FakeProcess

    func find(_ name: ItemName) -> VaultReadResult<Secret> {
        process.isOver ? .failed("dead") : store.find(name)
    }

    func names() throws(VaultError) -> [ItemName] { try store.names() }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
        let fate = process.write()
        if fate != .diesBefore { try store.put(bytes, at: name) }
        if fate != .lives { throw .failed("dead") }
    }

    func remove(_ name: ItemName) throws(VaultError) { try store.remove(name) }
}

/// The network as a process has it.
private struct MortalTransport: Transport {
    let network: FakeNetwork
    let process: FakeProcess

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        guard !process.isOver else { throw TransportError(.connectionLost("dead"), fate: .notSent) }
        let response = try await FakeTransport(network: network).send(draft)
        guard !process.isOver else { throw TransportError(.connectionLost("dead"), fate: .outcomeUnknown) }
        return response
    }
}

extension FakeWorld {
    /// As `process` has it, from its start on.
    func mortal(_ process: FakeProcess) throws -> FakeWorld {
        var world = try use(store.vault(MortalStore(store: store, process: process)))
        world.transport = MortalTransport(network: network, process: process)
        return world
    }
}
