import CountersignSeal
import CountersignWire
import Synchronization

/// All items in one file, sealed with a key that a guard keeps: who has the file and not the guard has nothing.
///
/// `CSV1 ‖ guard (1) ‖ length (2) ‖ guarded key ‖ sealed items`. The head is bound to what is sealed. A file that does not open is
/// never written over: it may open tomorrow.
package final class SealedFile: ItemStore {
    private static let magic = Array("CSV1".utf8)

    private let file: PrivateFile
    private let keyGuard: any KeyGuard
    /// What the guard gave last, and for which bytes: guards are slow, and some ask a person.
    private let opened = Mutex<(guarded: [UInt8], key: MasterKey)?>(nil)

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
        var (table, guarded) = try load()
        table.items[name] = bytes
        try save(table, guarded)
    }

    package func remove(_ name: ItemName) throws(VaultProblem) {
        var (table, guarded) = try load()
        guard table.items.removeValue(forKey: name) != nil else { return }
        try save(table, guarded)
    }

    /// The items, and the guarded key that they are sealed with; none for a file that is yet to be made.
    private func load() throws(VaultProblem) -> (table: ItemTable, guarded: [UInt8]?) {
        guard let bytes = try file.read().certain() else { return (ItemTable(), nil) }
        guard bytes.count >= 7, bytes.starts(with: SealedFile.magic), let kind = KeyGuardKind(rawValue: bytes[4]) else {
            throw .failed("\(file.path): not a vault of this program")
        }
        guard kind == keyGuard.kind else {
            throw .failed("\(file.path): sealed with \(kind.name); cannot be opened with \(keyGuard.kind.name)")
        }
        let end = 7 + (Int(bytes[5]) << 8 | Int(bytes[6]))
        guard bytes.count > end else { throw .failed("\(file.path): cut off") }
        let guarded = Array(bytes[7..<end])
        let key = try key(guarded)
        let sealed = Array(bytes[end...])
        guard let contents = try? key.open(sealed, as: binding(guarded)), let table = ItemTable(contents) else {
            throw .failed("\(file.path): does not open: altered, or cut off")
        }
        return (table, guarded)
    }

    private func save(_ table: ItemTable, _ known: [UInt8]?) throws(VaultProblem) {
        let guarded = if let known { known } else { try make() }
        let sealed = try key(guarded).seal(table.contents, as: binding(guarded))
        try file.replace(head(guarded) + sealed)
    }

    private func make() throws(VaultProblem) -> [UInt8] {
        let guarded = try keyGuard.seal(MasterKey.random())
        guard guarded.count <= 0xFFFF else {
            throw .failed("\(keyGuard.kind.name): a guarded key of \(guarded.count) bytes")
        }
        return guarded
    }

    private func key(_ guarded: [UInt8]) throws(VaultProblem) -> MasterKey {
        if let known = opened.withLock({ $0 }), known.guarded == guarded { return known.key }
        guard let key = MasterKey(try keyGuard.open(guarded)) else {
            throw .failed("\(keyGuard.kind.name): gave no key of \(MasterKey.count) bytes")
        }
        opened.withLock { $0 = (guarded, key) }
        return key
    }

    private func head(_ guarded: [UInt8]) -> [UInt8] {
        SealedFile.magic + [keyGuard.kind.rawValue, UInt8(guarded.count >> 8), UInt8(guarded.count & 0xFF)] + guarded
    }

    private func binding(_ guarded: [UInt8]) -> SealBinding {
        SealBinding(kind: "vault-items", row: Hex.encode(head(guarded).span))
    }
}
