import CountersignSeal
import CountersignTrust
import CountersignVault

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What a ``FaultyVault`` keeps its items in.
final class FaultyStore: ItemStore {
    private struct Plan {
        let fault: FaultyVault.Fault
        let call: FaultyVault.Call
        /// Such calls until then.
        var left: Int
    }

    private struct State {
        var items: [ItemName: Secret] = [:]
        var plans: [Plan] = []
        var always: FaultyVault.Fault?
        var calls: [FaultyVault.Call] = []
    }

    private let state = Locked(State())
    /// Its locks' folder, which is there for as long as somebody has the vault.
    private let folder: TemporaryFolder

    init(_ folder: TemporaryFolder) { self.folder = folder }

    func plan(_ fault: FaultyVault.Fault, _ call: FaultyVault.Call, _ number: Int) {
        state.with { $0.plans.append(Plan(fault: fault, call: call, left: number)) }
    }

    func always(_ fault: FaultyVault.Fault?) { state.with { $0.always = fault } }

    var pending: Int { state.with { $0.plans.count } }

    var calls: [FaultyVault.Call] { state.with { $0.calls } }

    func find(_ name: ItemName) -> Reading<Secret> {
        do {
            return try perform(.read, name) { $0[name].map { .value($0) } ?? .absent }
        } catch {
            return Reading(error)
        }
    }

    func names() throws(VaultProblem) -> [ItemName] { try perform(.list, nil) { Array($0.keys) } }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultProblem) { try perform(.write, name) { $0[name] = bytes } }

    func remove(_ name: ItemName) throws(VaultProblem) { try perform(.remove, name) { $0[name] = nil } }

    private func perform<Value>(
        _ call: FaultyVault.Call, _ name: ItemName?, _ body: (inout [ItemName: Secret]) -> Value
    ) throws(VaultProblem) -> Value {
        let faults = due(call)
        for case .slow(let milliseconds) in faults { usleep(milliseconds * 1000) }
        if faults.contains(.locked) { throw .locked("as the test wants it") }
        if faults.contains(.failed) { throw .failed("as the test wants it") }
        let value = state.with { state in
            let value = body(&state.items)
            guard let name else { return value }
            if faults.contains(.removedByAnother) { state.items[name] = nil }
            if faults.contains(.writtenByAnother) { state.items[name] = state.items[name].flatMap(Self.written) }
            return value
        }
        if faults.contains(.failedAfterwards) { throw .failed("as the test wants it, once it was done") }
        return value
    }

    /// The faults of this call, which are then no longer planned.
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
