import CountersignGate
import CountersignSQL
import CountersignSeal

/// An entry's place in the tables: the minute of its creation time, and a keyed fingerprint of 128 bits. A
/// reader of the database learns nothing else from it, and a caller can choose no collision.
struct PostgreSQLEntryName: Sendable, Hashable, Comparable {
    let minute: Int64
    let high: UInt64
    let low: UInt64

    static func < (left: Self, right: Self) -> Bool {
        (left.minute, left.high, left.low) < (right.minute, right.high, right.low)
    }

    static func minute(of created: Int64) -> Int64 { created / 60 }

    /// One batch for each minute, without repetitions, in ascending order.
    static func batches(of names: [PostgreSQLEntryName]) -> [ReplayEntryConnection.Batch] {
        var batches: [ReplayEntryConnection.Batch] = []
        var bytes: [UInt8] = []
        let sorted = names.sorted()
        for (place, name) in sorted.enumerated() {
            if place == 0 || sorted[place - 1] != name {
                for word in [name.high, name.low] {
                    withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
                }
            }
            guard place + 1 == sorted.count || sorted[place + 1].minute != name.minute else { continue }
            batches.append(.init(minute: name.minute, names: bytes))
            bytes = []
        }
        return batches
    }

    /// The names that the server has returned, of 16 bytes each.
    static func names(in bytes: [UInt8], of minute: Int64) -> [PostgreSQLEntryName] {
        stride(from: 0, to: bytes.count - bytes.count % 16, by: 16).map { start in
            func word(_ start: Int) -> UInt64 {
                bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
            }
            return PostgreSQLEntryName(minute: minute, high: word(start), low: word(start + 8))
        }
    }
}

extension PostgreSQLEntryName {
    init(_ entry: ReplayEntry, by hash: KeyedHash) {
        let (low, high) = entry.fingerprint(by: hash)
        self.init(minute: PostgreSQLEntryName.minute(of: entry.created), high: high, low: low)
    }
}
