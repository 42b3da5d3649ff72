import CountersignSeal
import CountersignWire

/// All items in one file, sealed with a key that a guard protects: the file is worthless without the guard.
///
/// ``SealedFileHeader`` ‖ sealed items. A file that does not open is never overwritten: it may open later.
package final class SealedFile: ItemStore {
    private let file: PrivateFile
    private let keyGuard: any KeyGuard
    /// The guard's last result, and the bytes it belongs to: guards are slow, and some ask a person.
    private let opened = Locked<(guarded: [UInt8], key: MasterKey)?>(nil)

    package init(_ path: String, guardedBy keyGuard: any KeyGuard) {
        file = PrivateFile(path: path)
        self.keyGuard = keyGuard
    }

    package func find(_ name: ItemName) -> VaultReadResult<Secret> {
        do {
            guard let bytes = try load().table.items[name] else { return .absent }
            return .value(bytes)
        } catch {
            return VaultReadResult(error)
        }
    }

    package func names() throws(VaultError) -> [ItemName] { Array(try load().table.items.keys) }

    package func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
        var (table, head) = try load()
        table.items[name] = bytes
        try save(table, under: head)
    }

    package func remove(_ name: ItemName) throws(VaultError) {
        var (table, head) = try load()
        guard table.items.removeValue(forKey: name) != nil else { return }
        try save(table, under: head)
    }

    /// The items, and the head that they are sealed under; none for a file that is yet to be made.
    private func load() throws(VaultError) -> (table: ItemTable, head: SealedFileHeader?) {
        guard let bytes = try file.read().get() else { return (ItemTable(), nil) }
        let (head, sealed) = try read(bytes)
        guard head.kind == keyGuard.kind else {
            throw .failed(
                "\(file.path): sealed with \(head.kind.name); cannot be opened with \(keyGuard.kind.name)")
        }
        let key = try key(head.guarded)
        guard let contents = try? key.open(sealed, as: head.binding), let table = ItemTable(contents) else {
            throw .failed("\(file.path): does not open: altered, or cut off")
        }
        return (table, head)
    }

    private func read(_ bytes: [UInt8]) throws(VaultError) -> (head: SealedFileHeader, sealed: [UInt8]) {
        do {
            return try SealedFileHeader.read(bytes)
        } catch .failed(let detail) {
            throw .failed("\(file.path): \(detail)")
        } catch {
            throw error
        }
    }

    private func save(_ table: ItemTable, under known: SealedFileHeader?) throws(VaultError) {
        let head =
            if let known { known } else {
                try SealedFileHeader(keyGuard.kind, guarded: keyGuard.seal(MasterKey.random()))
            }
        let sealed = try key(head.guarded).seal(table.contents, as: head.binding)
        try file.replace(head.bytes + sealed)
    }

    private func key(_ guarded: [UInt8]) throws(VaultError) -> MasterKey {
        if let known = opened.with({ $0 }), known.guarded == guarded { return known.key }
        guard let key = MasterKey(try keyGuard.open(guarded)) else {
            throw .failed("\(keyGuard.kind.name): gave no key of \(MasterKey.count) bytes")
        }
        opened.with { $0 = (guarded, key) }
        return key
    }
}

/// How a sealed file begins: `CSV1 ‖ guard (1) ‖ length (2) ‖ guarded key`, big-endian; what follows is
/// sealed with that key. Bound to what is sealed, so that neither is put to another.
struct SealedFileHeader: Equatable {
    private static let magic = Array("CSV1".utf8)
    private static let fixed = 7

    let kind: KeyGuardKind
    let guarded: [UInt8]

    init(_ kind: KeyGuardKind, guarded: [UInt8]) throws(VaultError) {
        guard guarded.count <= 0xFFFF else {
            throw .failed("\(kind.name): a guarded key of \(guarded.count) bytes")
        }
        self.kind = kind
        self.guarded = guarded
    }

    /// The head of a file and what it seals.
    static func read(_ bytes: [UInt8]) throws(VaultError) -> (head: SealedFileHeader, sealed: [UInt8]) {
        guard bytes.count >= fixed, bytes.starts(with: magic) else {
            throw .failed("not a vault of this program")
        }
        guard let kind = KeyGuardKind(rawValue: bytes[4]) else {
            throw .failed("sealed with a key guard that this version does not have: number \(bytes[4])")
        }
        let end = fixed + (Int(bytes[5]) << 8 | Int(bytes[6]))
        guard bytes.count > end else { throw .failed("cut off") }
        return (try SealedFileHeader(kind, guarded: Array(bytes[fixed..<end])), Array(bytes[end...]))
    }

    var bytes: [UInt8] {
        SealedFileHeader.magic + [kind.rawValue, UInt8(guarded.count >> 8), UInt8(guarded.count & 0xFF)]
            + guarded
    }

    var binding: SealBinding { SealBinding(kind: "vault-items", row: Hex.encode(bytes.span)) }
}

/// All items of a file in one secret: `1`, and for each, by name, the lengths of service (2), account (2) and
/// bytes (4, all big-endian), and the three themselves.
struct ItemTable {
    private static let layout: UInt8 = 1
    private static let head = 8

    var items: [ItemName: Secret] = [:]

    init() {}

    /// Nil where `contents` were not written by ``contents``.
    init?(_ contents: Secret) {
        guard contents.count >= 1, ItemTable.bytes(of: contents, range: 0..<1) == [ItemTable.layout] else {
            return nil
        }
        var at = 1
        while at < contents.count {
            guard contents.count - at >= ItemTable.head else { return nil }
            let head = ItemTable.bytes(of: contents, range: at..<at + ItemTable.head)
            let service = at + ItemTable.head
            let account = service + ItemTable.number(head[0..<2])
            let bytes = account + ItemTable.number(head[2..<4])
            at = bytes + ItemTable.number(head[4..<8])
            guard at <= contents.count,
                let name = ItemTable.name(in: contents, service: service..<account, account: account..<bytes),
                items.updateValue(contents.part(bytes..<at), forKey: name) == nil
            else { return nil }
        }
    }

    var contents: Secret {
        var pieces = [Secret(copying: [ItemTable.layout].span)]
        for (name, bytes) in items.sorted(by: { $0.key < $1.key }) {
            let (service, account) = (Array(name.service.utf8), Array(name.account.utf8))
            let lengths =
                ItemTable.bigEndian(service.count, count: 2) + ItemTable.bigEndian(account.count, count: 2)
                + ItemTable.bigEndian(bytes.count, count: 4)
            let head = lengths + service + account
            pieces.append(Secret(copying: head.span))
            pieces.append(bytes)
        }
        return Secret(joining: pieces)
    }

    private static func name(in contents: Secret, service: Range<Int>, account: Range<Int>) -> ItemName? {
        guard let service = String(utf8: bytes(of: contents, range: service)),
            let account = String(utf8: bytes(of: contents, range: account))
        else { return nil }
        return try? ItemName(service: service, account: account)
    }

    private static func bytes(of secret: Secret, range: Range<Int>) -> [UInt8] {
        secret.withExposedBytes { bytes in range.map { bytes[$0] } }
    }

    private static func bigEndian(_ number: Int, count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
