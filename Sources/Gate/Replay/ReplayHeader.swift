import CountersignSeal
import CountersignWire
import Glibc

/// The first page of a replay file, seen through a pointer into its mapping.
///
///     0 magic · 8 version · 16 buckets · 24 fingerprint key · 40 file id · 56 SHA-256 of all that
///     96 floor · 104 boot id · 144 window · 152 horizon · 512 the floor of each shard
struct ReplayHeader {
    static let bytes = 4096
    static let version: UInt64 = 1
    /// `CSREPLAY`.
    private static let magic: UInt64 = 0x5941_4C50_4552_5343

    private let start: UnsafeMutableRawPointer

    init(_ start: UnsafeMutableRawPointer) { self.start = start }

    /// What a new file begins with; the rest is zeros.
    func begin() {
        start.storeBytes(of: ReplayHeader.magic, toByteOffset: 0, as: UInt64.self)
        start.storeBytes(of: ReplayHeader.version, toByteOffset: 8, as: UInt64.self)
        let random = SystemRandom().bytes(32)
        for index in 0..<32 { start.storeBytes(of: random[index], toByteOffset: 24 + index, as: UInt8.self) }
    }

    /// All that outlives a change of size.
    func copy(_ other: ReplayHeader) { start.copyMemory(from: other.start, byteCount: ReplayHeader.bytes) }

    func seal(buckets: Int) {
        start.storeBytes(of: UInt64(buckets), toByteOffset: 16, as: UInt64.self)
        let digest = checksum()
        for index in 0..<32 { start.storeBytes(of: digest[index], toByteOffset: 56 + index, as: UInt8.self) }
    }

    /// The number of buckets; nil where this is no header of ours, or a damaged one.
    func bucketCount() -> Int? {
        guard start.load(as: UInt64.self) == ReplayHeader.magic,
            start.load(fromByteOffset: 8, as: UInt64.self) == ReplayHeader.version
        else { return nil }
        let digest = checksum()
        for index in 0..<32 where digest[index] != start.load(fromByteOffset: 56 + index, as: UInt8.self) { return nil }
        let count = Int(exactly: start.load(fromByteOffset: 16, as: UInt64.self)) ?? 0
        guard count >= ReplayTable.leastBuckets, count <= 1 << 40, count & (count - 1) == 0 else { return nil }
        return count
    }

    private func checksum() -> Digest<32> {
        SHA256.digest(Span(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: 56)))
    }

    var fingerprintKey: KeyedHash.Key {
        start.loadUnaligned(fromByteOffset: 24, as: KeyedHash.Key.self)
    }

    var fileID: FileID { FileID(start.loadUnaligned(fromByteOffset: 40, as: InlineArray<16, UInt8>.self)) }

    /// Signatures made at or before this (Unix seconds) are refused. Zero where there is no such bound.
    var floor: Int64 {
        get { start.load(fromByteOffset: 96, as: Int64.self) }
        nonmutating set { start.storeBytes(of: newValue, toByteOffset: 96, as: Int64.self) }
    }

    /// 36 characters, as the kernel writes it.
    var bootID: [UInt8] {
        get { (0..<36).map { start.load(fromByteOffset: 104 + $0, as: UInt8.self) } }
        nonmutating set {
            for index in 0..<36 {
                let byte = index < newValue.count ? newValue[index] : 0
                start.storeBytes(of: byte, toByteOffset: 104 + index, as: UInt8.self)
            }
        }
    }

    /// Takes up the widest window of the present policies, in seconds. Where it was wider before, what may have been
    /// admitted reaches further ahead than the new one says: the horizon remembers how far.
    func adopt(window: Int64, now: Int64) {
        let previous = start.load(fromByteOffset: 144, as: Int64.self)
        if previous > window {
            let (reach, overflow) = now.addingReportingOverflow(previous)
            start.storeBytes(of: max(horizon, overflow ? Int64.max : reach), toByteOffset: 152, as: Int64.self)
        }
        start.storeBytes(of: window, toByteOffset: 144, as: Int64.self)
    }

    /// No signature later than this (Unix seconds) was admitted under a window that was wider than the present one.
    var horizon: Int64 { start.load(fromByteOffset: 152, as: Int64.self) }

    /// The creation time of the newest entry that this shard has dropped.
    func shardFloor(_ shard: Int) -> Int64 { start.load(fromByteOffset: 512 + shard * 8, as: Int64.self) }

    func raiseShardFloor(_ shard: Int, over created: UInt64) {
        let created = Int64(truncatingIfNeeded: created)
        if created > shardFloor(shard) { start.storeBytes(of: created, toByteOffset: 512 + shard * 8, as: Int64.self) }
    }
}
