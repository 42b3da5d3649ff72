import CountersignSeal

/// The machine's store, opened when it is first asked: that takes long, may need a person, and may go wrong, and none of it is for
/// the line of code that names a place. What goes wrong is tried again at the next call.
final class LazyStore: ItemStore {
    private let machine: any StoreOpening
    private let settling: Settling
    private let opened = Locked<(any ItemStore)?>(nil)

    init(_ machine: any StoreOpening, _ settling: Settling) {
        self.machine = machine
        self.settling = settling
    }

    func find(_ name: ItemName) -> Reading<Secret> {
        do {
            return try store().find(name)
        } catch {
            return Reading(error)
        }
    }

    func names() throws(VaultProblem) -> [ItemName] { try store().names() }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultProblem) { try store().put(bytes, at: name) }

    func remove(_ name: ItemName) throws(VaultProblem) { try store().remove(name) }

    private func store() throws(VaultProblem) -> any ItemStore {
        let result = opened.with { known -> Result<any ItemStore, VaultProblem> in
            if let known { return .success(known) }
            do throws(VaultProblem) {
                let (store, lifetime) = try machine.open()
                if lifetime == .outlivesTheProgram { try settling.settle(store) }
                known = store
                return .success(store)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}

/// How a machine's own store is found. Twins for each system in Platform/.
protocol StoreOpening: Sendable {
    /// For locks and the installation's mark; made where there is none.
    var folder: String { get }

    /// Blocks its thread; may ask a person.
    func open() throws(VaultProblem) -> (any ItemStore, StoreLifetime)
}

/// How long what a store keeps is there.
enum StoreLifetime { case endsWithTheFolder, outlivesTheProgram }
