import CountersignSeal
import CountersignVault
import Foundation
import Synchronization

@testable import CountersignClient

/// A vault in memory, which can be told to fail: what the process's end would have left is what it still
/// holds.
final class MemoryVault: ItemStore {
    private struct Held {
        var items: [ItemName: Secret] = [:]
        var writesLeft = Int.max
        var writes = 0
        var readings = 0
        var closed: VaultError?
    }

    private let held = Mutex(Held())
    private let folder = TestFolder()

    deinit { folder.remove() }

    /// What a client is given. Its locks are files, as everywhere.
    var vault: Vault { vault(self) }

    /// The same over what stands between.
    func vault(_ store: any ItemStore) -> Vault { Vault(store, locks: VaultLocks(folder: folder.path)) }

    /// From then on no write comes about.
    func failAfter(writes: Int) { held.withLock { $0.writesLeft = writes } }

    /// From then on nothing is read or written; nil opens it.
    func close(_ problem: VaultError?) { held.withLock { $0.closed = problem } }

    var writes: Int { held.withLock { $0.writes } }
    var readings: Int { held.withLock { $0.readings } }

    /// All that is there: to be put back later, as from a copy.
    var contents: [ItemName: Secret] {
        get { held.withLock { $0.items } }
        set { held.withLock { $0.items = newValue } }
    }

    func find(_ name: ItemName) -> VaultReadResult<Secret> {
        held.withLock { held in
            held.readings += 1
            if let problem = held.closed { return VaultReadResult(problem) }
            return held.items[name].map { .value($0) } ?? .absent
        }
    }

    func names() throws(VaultError) -> [ItemName] { Array(contents.keys) }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
        try held.withLock { (held) throws(VaultError) in
            if let problem = held.closed { throw problem }
            guard held.writesLeft > 0 else { throw .failed("the process ended here") }
            held.writesLeft -= 1
            held.writes += 1
            held.items[name] = bytes
        }
    }

    func remove(_ name: ItemName) throws(VaultError) {
        held.withLock { _ = $0.items.removeValue(forKey: name) }
    }
}
