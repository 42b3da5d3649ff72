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
        let key = entry.replayKey.span
        let id = entry.keyID.bytes
        var text = InlineArray<256, UInt8>(repeating: 0)
        text[0] = UInt8(truncatingIfNeeded: key.count)
        text[1] = UInt8(truncatingIfNeeded: id.count)
        text[2] = entry.scheme.number
        for index in 0..<key.count { text[3 + index] = key[index] }
        for index in 0..<id.count { text[3 + key.count + index] = id[index] }
        let (low, high) = hash.hash(text.span.extracting(0..<3 + key.count + id.count))
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
        // Never written: nothing is remembered of a token.
        case .token: 7
        }
    }
}
