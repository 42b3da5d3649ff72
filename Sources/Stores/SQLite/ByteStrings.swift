import CountersignWire

/// Several byte strings in one blob: each behind its length, four bytes, big-endian.
enum ByteStrings {
    static func encode(_ strings: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(strings.reduce(0) { $0 + 4 + $1.count })
        for string in strings {
            let count = UInt32(truncatingIfNeeded: string.count)
            for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
            bytes += string
        }
        return bytes
    }

    /// Nil for what ``encode(_:)`` does not write.
    static func decode(_ bytes: [UInt8]) -> [[UInt8]]? {
        var strings: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= count else { return nil }
            strings.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return strings
    }
}
