import CountersignSeal
import CountersignTrust
import CountersignVault

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A vault in memory with faults that a test plans: it is locked, fails, is changed by another process, or
/// is slow.
///
/// A test of a fault asserts that the fault has occurred: that ``pending`` is 0.
public final class FaultyVault: Sendable {
    /// A call of the vault to its item store. A conditional change reads first.
    public enum Call: Sendable, Hashable, CaseIterable {
        /// Reads one item.
        case read
        /// Writes one item, new or existing.
        case write
        /// Removes one item, existing or not.
        case remove
        /// Lists the names of all items.
        case list
    }

    /// A fault at a call.
    public enum Fault: Sendable, Hashable {
        /// The store reports that it is locked, and does nothing.
        case locked
        /// The store fails, and does nothing.
        case failed
        /// The store performs the call and then fails, like a machine that loses power after a write.
        case failedAfterwards
        /// The store performs the call; then another process rewrites the item with the same contents.
        case writtenByAnother
        /// The store performs the call; then another process removes the item.
        case removedByAnother
        /// The store blocks its thread for that long in real time, and then performs the call.
        case slow(milliseconds: UInt32)
    }

    /// The vault with the planned faults.
    public let vault: Vault
    private let store: FaultyItemStore

    /// Makes an empty vault.
    public init() throws {
        let folder = try TemporaryFolder()
        store = FaultyItemStore(folder)
        vault = Vault(store, locks: VaultLocks(folder: folder.path))
    }

    /// Plans one fault at the `number`th such call from now on; the next call is 1. Several faults may be
    /// planned for the same call.
    public func plan(_ fault: Fault, at call: Call, number: Int = 1) {
        store.plan(fault, on: call, number: number)
    }

    /// Makes every call meet `fault` until a call of this function with nil.
    public func always(_ fault: Fault?) { store.always(fault) }

    /// The number of planned faults that have not occurred.
    public var pending: Int { store.pending }

    /// All calls so far, in order.
    public var calls: [Call] { store.calls }
}

/// A temporary folder that is removed with the value.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/countersign-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw TestError(description: "no temporary folder below \(parent)")
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for file in ["writing.lock", "lease.lock"] { unlink("\(path)/\(file)") }
        rmdir(path)
    }
}

/// The item store of a ``FaultyVault``.
final class FaultyItemStore: ItemStore {
    private struct Plan {
        let fault: FaultyVault.Fault
        let call: FaultyVault.Call
        /// The number of such calls up to and including the faulty one.
        var left: Int
    }

    private struct State {
        var items: [ItemName: Secret] = [:]
        var plans: [Plan] = []
        var always: FaultyVault.Fault?
        var calls: [FaultyVault.Call] = []
    }

    private let state = Locked(State())
    /// The folder of the vault's locks, which exists as long as the vault is in use.
    private let folder: TemporaryFolder

    init(_ folder: TemporaryFolder) { self.folder = folder }

    func plan(_ fault: FaultyVault.Fault, on call: FaultyVault.Call, number: Int) {
        state.with { $0.plans.append(Plan(fault: fault, call: call, left: number)) }
    }

    func always(_ fault: FaultyVault.Fault?) { state.with { $0.always = fault } }

    var pending: Int { state.with { $0.plans.count } }

    var calls: [FaultyVault.Call] { state.with { $0.calls } }

    func find(_ name: ItemName) -> VaultReadResult<Secret> {
        do {
            return try perform(.read, on: name) { $0[name].map { .value($0) } ?? .absent }
        } catch {
            return VaultReadResult(error)
        }
    }

    func names() throws(VaultError) -> [ItemName] { try perform(.list, on: nil) { Array($0.keys) } }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
        try perform(.write, on: name) { $0[name] = bytes }
    }

    func remove(_ name: ItemName) throws(VaultError) { try perform(.remove, on: name) { $0[name] = nil } }

    private func perform<Value>(
        _ call: FaultyVault.Call, on name: ItemName?, body: (inout [ItemName: Secret]) -> Value
    ) throws(VaultError) -> Value {
        let faults = due(call)
        for case .slow(let milliseconds) in faults { usleep(milliseconds * 1000) }
        if faults.contains(.locked) { throw .locked("as the test wants it") }
        if faults.contains(.failed) { throw .failed("as the test wants it") }
        let value = state.with { state in
            let value = body(&state.items)
            guard let name else { return value }
            if faults.contains(.removedByAnother) { state.items[name] = nil }
            if faults.contains(.writtenByAnother) {
                state.items[name] = state.items[name].flatMap(Self.written)
            }
            return value
        }
        if faults.contains(.failedAfterwards) { throw .failed("as the test wants it, once it was done") }
        return value
    }

    /// Returns the faults of this call and removes them from the plan.
    private func due(_ call: FaultyVault.Call) -> Set<FaultyVault.Fault> {
        state.with { state in
            state.calls.append(call)
            var due = Set(state.always.map { [$0] } ?? [])
            for index in state.plans.indices where state.plans[index].call == call {
                state.plans[index].left -= 1
                if state.plans[index].left <= 0 { due.insert(state.plans[index].fault) }
            }
            state.plans.removeAll { $0.left <= 0 }
            return due
        }
    }

    /// The same contents in another version.
    private static func written(_ stored: Secret) -> Secret? { VaultItem(stored: stored)?.rewritten.stored }
}

/// An operation of the test kit that failed.
public struct TestError: Error, CustomStringConvertible {
    /// What failed and why, in one sentence.
    public let description: String

    init(description: String) { self.description = description }
}
