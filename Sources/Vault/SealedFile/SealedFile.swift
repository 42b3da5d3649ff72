import CountersignSeal

/// All items in one file, sealed with a key that a guard keeps: who has the file and not the guard has nothing.
///
/// ``SealedHead`` ‖ sealed items. A file that does not open is never written over: it may open tomorrow.
package final class SealedFile: ItemStore {
    private let file: PrivateFile
    private let keyGuard: any KeyGuard
    /// What the guard gave last, and for which bytes: guards are slow, and some ask a person.
    private let opened = Locked<(guarded: [UInt8], key: MasterKey)?>(nil)

    package init(_ path: String, guardedBy keyGuard: any KeyGuard) {
        file = PrivateFile(path: path)
        self.keyGuard = keyGuard
    }

    package func find(_ name: ItemName) -> Reading<Secret> {
        do {
            guard let bytes = try load().table.items[name] else { return .absent }
            return .value(bytes)
        } catch {
            return Reading(error)
        }
    }

    package func names() throws(VaultProblem) -> [ItemName] { Array(try load().table.items.keys) }

    package func put(_ bytes: Secret, at name: ItemName) throws(VaultProblem) {
        var (table, head) = try load()
        table.items[name] = bytes
        try save(table, head)
    }

    package func remove(_ name: ItemName) throws(VaultProblem) {
        var (table, head) = try load()
        guard table.items.removeValue(forKey: name) != nil else { return }
        try save(table, head)
    }

    /// The items, and the head that they are sealed under; none for a file that is yet to be made.
    private func load() throws(VaultProblem) -> (table: ItemTable, head: SealedHead?) {
        guard let bytes = try file.read().certain() else { return (ItemTable(), nil) }
        let (head, sealed) = try read(bytes)
        guard head.kind == keyGuard.kind else {
            throw .failed("\(file.path): sealed with \(head.kind.name); cannot be opened with \(keyGuard.kind.name)")
        }
        let key = try key(head.guarded)
        guard let contents = try? key.open(sealed, as: head.binding), let table = ItemTable(contents) else {
            throw .failed("\(file.path): does not open: altered, or cut off")
        }
        return (table, head)
    }

    private func read(_ bytes: [UInt8]) throws(VaultProblem) -> (head: SealedHead, sealed: [UInt8]) {
        do {
            return try SealedHead.read(bytes)
        } catch .failed(let detail) {
            throw .failed("\(file.path): \(detail)")
        } catch {
            throw error
        }
    }

    private func save(_ table: ItemTable, _ known: SealedHead?) throws(VaultProblem) {
        let head =
            if let known { known } else { try SealedHead(keyGuard.kind, guarded: keyGuard.seal(MasterKey.random())) }
        let sealed = try key(head.guarded).seal(table.contents, as: head.binding)
        try file.replace(head.bytes + sealed)
    }

    private func key(_ guarded: [UInt8]) throws(VaultProblem) -> MasterKey {
        if let known = opened.with({ $0 }), known.guarded == guarded { return known.key }
        guard let key = MasterKey(try keyGuard.open(guarded)) else {
            throw .failed("\(keyGuard.kind.name): gave no key of \(MasterKey.count) bytes")
        }
        opened.with { $0 = (guarded, key) }
        return key
    }
}
