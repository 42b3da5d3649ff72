import CountersignSeal
import Synchronization

@testable import CountersignClient

/// A vault in memory, which can be told to fail: what the process's end would have left is what it still holds.
final class MemoryVault: Vault {
    private struct Held {
        var contents: Secret?
        var isLeased = false
        var writesLeft = Int.max
        var writes = 0
    }

    private let held = Mutex(Held())

    /// From then on no write comes about.
    func failAfter(writes: Int) { held.withLock { $0.writesLeft = writes } }

    var writes: Int { held.withLock { $0.writes } }

    func read() -> VaultReading { held.withLock { $0.contents.map { .value($0) } ?? .absent } }

    func write(_ contents: Secret) throws(VaultProblem) {
        let isWritten = held.withLock { held in
            guard held.writesLeft > 0 else { return false }
            held.writesLeft -= 1
            held.writes += 1
            held.contents = contents
            return true
        }
        if !isWritten { throw VaultProblem("the process ended here") }
    }

    func erase() throws(VaultProblem) { held.withLock { $0.contents = nil } }

    nonisolated(nonsending) func lease() async throws(VaultProblem) -> any VaultLease {
        while !held.withLock({ held in
            defer { held.isLeased = true }
            return !held.isLeased
        }) { await Task.yield() }
        return Lease(vault: self)
    }

    private struct Lease: VaultLease {
        let vault: MemoryVault

        func release() { vault.held.withLock { $0.isLeased = false } }
    }
}
