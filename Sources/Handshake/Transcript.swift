/// What both ends hash, sign or authenticate alike: a label, and parts that are each preceded by their length, so that no two
/// lists of parts are spelled alike.
struct Transcript {
    private(set) var bytes: [UInt8]

    init(_ label: String) { bytes = Array("countersign/1 \(label)".utf8) + [0] }

    /// A part: its length in 8 bytes, big-endian, and itself.
    mutating func add(_ part: [UInt8]) {
        add(UInt64(part.count))
        bytes += part
    }

    mutating func add(_ part: String) { add(Array(part.utf8)) }

    /// A number in 8 bytes, big-endian.
    mutating func add(_ number: UInt64) {
        bytes += (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
    }
}
