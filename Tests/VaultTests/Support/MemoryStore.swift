import CountersignSeal
import Synchronization

@testable import CountersignVault

/// Items in memory, and the states that a real store can be in.
final class MemoryStore: ItemStore {
    enum State { case open, locked, failing }

    private let items = Mutex<[ItemName: Secret]>([:])
    private let state = Mutex<State>(.open)
    private let finds = Mutex<[ItemName: Int]>([:])

    func reads(of name: ItemName) -> Int { finds.withLock { $0[name, default: 0] } }

    func become(_ next: State) { state.withLock { $0 = next } }

    private func require() throws(VaultError) {
        switch state.withLock({ $0 }) {
        case .open: return
        case .locked: throw .locked("test")
        case .failing: throw .failed("test")
        }
    }

    func find(_ name: ItemName) -> VaultReadResult<Secret> {
        finds.withLock { $0[name, default: 0] += 1 }
        do {
            try require()
        } catch {
            return VaultReadResult(error)
        }
        return items.withLock { $0[name] }.map { .value($0) } ?? .absent
    }

    func names() throws(VaultError) -> [ItemName] {
        try require()
        return items.withLock { Array($0.keys) }
    }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
        try require()
        items.withLock { $0[name] = bytes }
    }

    func remove(_ name: ItemName) throws(VaultError) {
        try require()
        items.withLock { _ = $0.removeValue(forKey: name) }
    }
}

/// Apple's keychain as its statuses tell it.
final class MemoryKeychain: KeychainCalls {
    private let items = Mutex<[ItemName: Secret]>([:])
    /// What every call answers instead, where it is not 0.
    private let status = Mutex<Int32>(0)

    func answer(_ next: Int32) { status.withLock { $0 = next } }

    private var forced: Int32? {
        let forced = status.withLock { $0 }
        return forced == 0 ? nil : forced
    }

    func copy(_ name: ItemName) -> (status: Int32, bytes: Secret?) {
        if let forced { return (forced, nil) }
        let found = items.withLock { $0[name] }
        return (found == nil ? KeychainStatus.notFound : 0, found)
    }

    func list() -> (status: Int32, names: [(service: String, account: String)]) {
        if let forced { return (forced, []) }
        let names = items.withLock { Array($0.keys) }
        return (names.isEmpty ? KeychainStatus.notFound : 0, names.map { ($0.service, $0.account) })
    }

    func add(_ bytes: Secret, at name: ItemName) -> Int32 {
        if let forced { return forced }
        return items.withLock { items in
            guard items[name] == nil else { return KeychainStatus.duplicate }
            items[name] = bytes
            return 0
        }
    }

    func update(_ bytes: Secret, at name: ItemName) -> Int32 {
        if let forced { return forced }
        return items.withLock { $0.updateValue(bytes, forKey: name) == nil ? nil : 0 } ?? undo(name)
    }

    private func undo(_ name: ItemName) -> Int32 {
        items.withLock { _ = $0.removeValue(forKey: name) }
        return KeychainStatus.notFound
    }

    func delete(_ name: ItemName) -> Int32 {
        if let forced { return forced }
        return items.withLock { $0.removeValue(forKey: name) } == nil ? KeychainStatus.notFound : 0
    }
}
