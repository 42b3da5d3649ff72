import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Ninety-six bits that stand for an entry. The hash is keyed for each file, so no caller can choose where in the table
/// an entry lands, nor make two meet.
struct Fingerprint: Equatable {
    /// Chooses the bucket by its low bits, and with it the shard.
    let place: UInt64
    let tail: UInt32

    init(_ entry: ReplayEntry, _ hash: KeyedHash) {
        // Lengths first: no two entries are spelled alike.
        var text = InlineArray<256, UInt8>(repeating: 0)
        var count = 0
        func add(_ byte: UInt8) {
            text[count] = byte
            count += 1
        }
        add(UInt8(truncatingIfNeeded: entry.replayKey.count))
        add(UInt8(truncatingIfNeeded: entry.keyID.count))
        add(entry.scheme.number)
        let key = entry.replayKey.span
        for index in 0..<key.count { add(key[index]) }
        for index in 0..<entry.keyID.count { add(entry.keyID[index]) }
        let (low, high) = hash.hash(text.span.extracting(0..<count))
        place = low
        tail = UInt32(truncatingIfNeeded: high)
    }

    init(place: UInt64, tail: UInt32) {
        self.place = place
        self.tail = tail
    }

    var shard: Int { Int(place & UInt64(ShardLocks.count - 1)) }
}

extension SchemeName {
    /// What stands for the scheme in the file: never reused.
    fileprivate var number: UInt8 {
        switch self {
        case .messageSignatures: 1
        case .sigV4: 2
        case .formMD5: 3
        case .authV1: 4
        case .authV2: 5
        case .authV4: 6
        }
    }
}
