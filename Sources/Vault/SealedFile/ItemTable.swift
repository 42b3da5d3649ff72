import CountersignSeal

/// All items of a file in one secret: `1`, and for each, by name, the lengths of service (2), account (2) and bytes (4, all
/// big-endian), and the three themselves.
struct ItemTable {
    private static let layout: UInt8 = 1
    private static let head = 8

    var items: [ItemName: Secret] = [:]

    init() {}

    /// Nil where `contents` were not written by ``contents``.
    init?(_ contents: Secret) {
        guard contents.count >= 1, ItemTable.bytes(contents, 0..<1) == [ItemTable.layout] else { return nil }
        var at = 1
        while at < contents.count {
            guard contents.count - at >= ItemTable.head else { return nil }
            let head = ItemTable.bytes(contents, at..<at + ItemTable.head)
            let service = at + ItemTable.head
            let account = service + ItemTable.number(head[0..<2])
            let bytes = account + ItemTable.number(head[2..<4])
            at = bytes + ItemTable.number(head[4..<8])
            guard at <= contents.count, let name = ItemTable.name(contents, service..<account, account..<bytes),
                items.updateValue(contents.part(bytes..<at), forKey: name) == nil
            else { return nil }
        }
    }

    var contents: Secret {
        var pieces = [Secret(copying: [ItemTable.layout].span)]
        for (name, bytes) in items.sorted(by: { $0.key < $1.key }) {
            let (service, account) = (Array(name.service.utf8), Array(name.account.utf8))
            let lengths =
                ItemTable.bigEndian(service.count, 2) + ItemTable.bigEndian(account.count, 2)
                + ItemTable.bigEndian(bytes.count, 4)
            let head = lengths + service + account
            pieces.append(Secret(copying: head.span))
            pieces.append(bytes)
        }
        return Secret(joining: pieces)
    }

    private static func name(_ contents: Secret, _ service: Range<Int>, _ account: Range<Int>) -> ItemName? {
        guard let service = String(utf8: bytes(contents, service)),
            let account = String(utf8: bytes(contents, account))
        else { return nil }
        return try? ItemName(service: service, account: account)
    }

    private static func bytes(_ secret: Secret, _ range: Range<Int>) -> [UInt8] {
        secret.withExposedBytes { bytes in range.map { bytes[$0] } }
    }

    private static func bigEndian(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
