import CountersignMemory
import CountersignSeal
import CountersignVault

/// The durable part of a device: a vault in memory. Each process on it has its own handle, which fails once
/// the process has ended.
final class ModelVault: Sendable {
    private let items = Locked<[ItemName: Secret]>([:])
    let folder: String

    init(folder: String) { self.folder = folder }

    var contents: [ItemName: Secret] {
        get { items.with { $0 } }
        set { items.with { $0 = newValue } }
    }

    func vault(for process: ModelProcess) -> Vault {
        Vault(Handle(vault: self, process: process), locks: VaultLocks(folder: folder))
    }

    private struct Handle: ItemStore {
        let vault: ModelVault
        let process: ModelProcess

        func find(_ name: ItemName) -> VaultReadResult<Secret> {
            if process.isOver { return VaultReadResult(ModelProcess.ended) }
            return vault.contents[name].map { .value($0) } ?? .absent
        }

        func names() throws(VaultError) -> [ItemName] { Array(vault.contents.keys) }

        func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
            try process.checkBeforeWrite()
            vault.items.with { $0[name] = bytes }
            try process.checkAfterWrite()
        }

        func remove(_ name: ItemName) throws(VaultError) {
            if process.isOver { throw ModelProcess.ended }
            vault.items.with { _ = $0.removeValue(forKey: name) }
        }
    }
}

/// A process of the client, which may be killed.
final class ModelProcess: Sendable {
    enum End: Sendable, Equatable {
        /// Before the write with that number is durable, or after it.
        case beforeWrite(Int)
        case afterWrite(Int)
    }

    private struct State {
        var isOver = false
        var writes = 0
        var end: End?
        /// Kills that came about.
        var killed: End?
    }

    static let ended = VaultError.failed("the process has ended")

    private let state = Locked(State())

    var isOver: Bool { state.with { $0.isOver } }
    var killed: End? { state.with { $0.killed } }

    func kill() { state.with { $0.isOver = true } }

    /// Kills it at one of its next writes.
    func plan(_ end: End) {
        state.with {
            $0.end = end
            $0.writes = 0
        }
    }

    func checkBeforeWrite() throws(VaultError) {
        try state.with { (state) throws(VaultError) in
            if state.isOver { throw ModelProcess.ended }
            guard state.end == .beforeWrite(state.writes) else { return }
            (state.isOver, state.killed) = (true, state.end)
            throw ModelProcess.ended
        }
    }

    func checkAfterWrite() throws(VaultError) {
        try state.with { (state) throws(VaultError) in
            defer { state.writes += 1 }
            guard state.end == .afterWrite(state.writes) else { return }
            (state.isOver, state.killed) = (true, state.end)
            throw ModelProcess.ended
        }
    }
}
