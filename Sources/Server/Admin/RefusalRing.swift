import CountersignSeal
import CountersignWire
import Glibc

/// Refused requests in one file of a limited size, in which new records replace the oldest. An index in the
/// same file finds a record by its id. Not thread-safe.
///
/// The file consists of a header, the index and slots. A record takes one slot or several consecutive slots.
/// Each slot begins with its kind. A slot that continues a record also has its distance to the record's first
/// slot, so that the records can be walked from the newest to the oldest. The index has a bucket of eight
/// cells for every four slots. A cell has 32 bits of the id and the record's first slot. Each record that is
/// read is verified by its checksum and its id, so a cell or slot that was overwritten finds nothing.
final class RefusalRing {
    /// One stored record.
    struct Record {
        let time: Int64
        let bytes: [UInt8]
    }

    static let longestRecord = 8_192
    /// The index has 32 bits for a slot.
    private static let mostSlots: UInt64 = 0xFFFF_FFFF
    private static let magic: UInt64 = 0x3153_5546_4552_5343  // "CSREFUS1"
    private static let headerBytes = 4_096
    private static let slotBytes = 512
    private static let firstHead = 48
    private static let restHead = 8
    private static let cellsOfBucket = 8
    private static let hash = KeyedHash(key: KeyedHash.Key { UInt8($0) })

    private enum SlotKind: UInt8 {
        case empty, first, rest
    }

    private let file: Int32
    let slots: Int
    private let buckets: Int
    private var isLocked = false
    /// The slot at which the next record begins.
    private var head = 0
    private var sequence: UInt64 = 0
    private var hasWrapped = false

    /// Opens or creates the file. Creates a file of another size again, because its index is for that size.
    /// `bytes` is the size of the file, at least ``leastBytes``.
    init(_ path: String, bytes: Int) throws(OperationalError) {
        let share = RefusalRing.slotBytes + 2 * MemoryLayout<UInt64>.size
        let slots = max((bytes - RefusalRing.headerBytes) / share, 64) / 4 * 4
        self.slots = slots
        buckets = slots / 4
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw OperationalError(
                .unreachable, message: "\(path): cannot open: \(String(cString: strerror(errno)))")
        }
        // If another process writes to the file, the first record of this process prepares it.
        if !load() { _ = lock() }
    }

    /// Opens the file of another process, which may write to it, for reading only. Nil if there is no such
    /// file, or if it has no records yet.
    init?(reading path: String) throws(OperationalError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw OperationalError(
                .unreachable, message: "\(path): cannot open: \(String(cString: strerror(errno)))")
        }
        file = descriptor
        // The size for which the file was made is that of its index.
        var header = [UInt8](repeating: 0, count: 16)
        let isWhole = pread(descriptor, &header, header.count, 0) == header.count
        let stated = isWhole ? RefusalRing.word(of: header, at: 8) : 0
        slots = Int(min(stated, RefusalRing.mostSlots))
        buckets = max(slots / 4, 1)
        guard slots > 0, load() else { return nil }
    }

    deinit { close(file) }

    // MARK: Writing

    /// Appends a record. Returns false and keeps nothing if another process writes to the file, if the disk
    /// write fails, or if the record is too long.
    func append(_ bytes: [UInt8], id: (UInt64, UInt64), at time: Int64) -> Bool {
        guard lock(), bytes.count <= RefusalRing.longestRecord else { return false }
        let count = RefusalRing.slotCount(of: bytes.count)
        if head + count > slots {
            // The records there are older than all others; a walk passes over empty slots.
            let empty = [UInt8](repeating: SlotKind.empty.rawValue, count: RefusalRing.restHead)
            for slot in head..<slots where !write(empty, at: offset(of: slot)) { return false }
            (head, hasWrapped) = (0, true)
        }
        sequence += 1
        var rest = bytes[...]
        for index in 0..<count {
            var slot: [UInt8] = []
            slot.reserveCapacity(RefusalRing.slotBytes)
            if index == 0 {
                slot = [SlotKind.first.rawValue, UInt8(count), 0, 0, 0, 0, 0, 0]
                slot += RefusalRing.words([
                    UInt64(bytes.count), sequence, id.0, id.1,
                    RefusalRing.hash.hash(bytes.span).low ^ UInt64(bitPattern: time)
                        ^ sequence,
                ])
            } else {
                slot = [SlotKind.rest.rawValue, UInt8(index), 0, 0, 0, 0, 0, 0]
            }
            // The first slot has the time in place of payload bytes.
            if index == 0 { slot += RefusalRing.words([UInt64(bitPattern: time)]) }
            let room = RefusalRing.slotBytes - slot.count
            slot += rest.prefix(room)
            rest = rest.dropFirst(room)
            guard write(slot, at: offset(of: head + index)) else { return false }
        }
        note(head, of: id)
        head += count
        if head == slots { (head, hasWrapped) = (0, true) }
        return writeHeader()
    }

    /// Only one process writes: during a restart, the predecessor until it ends.
    private func lock() -> Bool {
        if isLocked { return true }
        guard flock(file, LOCK_EX | LOCK_NB) == 0, load() || reset() else { return false }
        isLocked = true
        return true
    }

    static func slotCount(of length: Int) -> Int {
        let first = slotBytes - firstHead - MemoryLayout<UInt64>.size
        guard length > first else { return 1 }
        let rest = slotBytes - restHead
        return 1 + (length - first + rest - 1) / rest
    }

    /// Points the index to the slot, in an empty cell or in place of the oldest.
    private func note(_ slot: Int, of id: (UInt64, UInt64)) {
        let bucket = offset(ofBucketOf: id)
        var cells = words(count: RefusalRing.cellsOfBucket, at: bucket)
        guard cells.count == RefusalRing.cellsOfBucket else { return }
        func age(_ cell: UInt64) -> Int {
            cell == 0 ? .max : (slot - Int(cell & 0xFFFF_FFFF) + 1 + slots) % slots
        }
        let place = cells.indices.max { age(cells[$0]) < age(cells[$1]) } ?? 0
        cells[place] = RefusalRing.tag(of: id) | UInt64(slot + 1)
        _ = write(RefusalRing.words([cells[place]]), at: bucket + place * MemoryLayout<UInt64>.size)
    }

    // MARK: Reading

    /// Returns the record with that id, or nil if the ring does not have it or has overwritten it.
    func record(of id: (UInt64, UInt64)) -> Record? {
        refresh()
        for cell in words(count: RefusalRing.cellsOfBucket, at: offset(ofBucketOf: id))
        where cell & ~0xFFFF_FFFF == RefusalRing.tag(of: id) && cell & 0xFFFF_FFFF > 0 {
            let slot = Int(cell & 0xFFFF_FFFF) - 1
            if slot < slots, let found = entry(at: slot), found.id == id { return found.record }
        }
        return nil
    }

    /// Calls `body` with the records from the newest to the oldest, until it returns false or `most` records
    /// were read.
    func walk(atMost most: Int, body: (Record) -> Bool) {
        refresh()
        var slot = head
        var last = UInt64.max
        var (read, passed) = (0, 0)
        while read < most, passed < slots {
            if slot == 0 {
                guard hasWrapped else { return }
                slot = slots
            }
            slot -= 1
            passed += 1
            guard let head = bytes(count: 2, at: offset(of: slot)), let kind = SlotKind(rawValue: head[0])
            else { return }
            switch kind {
            case .empty: continue
            case .rest:
                // The record's first slot, unless that was overwritten by a newer record.
                let back = Int(head[1])
                guard back > 0, back <= slot else { return }
                slot -= back
                passed += back
            case .first: break
            }
            guard let found = entry(at: slot), found.sequence < last else { return }
            last = found.sequence
            read += 1
            guard body(found.record) else { return }
        }
    }

    /// The time of the oldest record, in whole Unix seconds; nil if the ring is empty.
    var oldest: Int64? {
        refresh()
        let start = hasWrapped ? head : 0
        for step in 0..<min(slots, 64) {
            if let found = entry(at: (start + step) % slots) { return found.record.time }
        }
        return nil
    }

    /// Reads what another process has written since.
    private func refresh() { if !isLocked { _ = load() } }

    private func entry(at slot: Int) -> (record: Record, id: (UInt64, UInt64), sequence: UInt64)? {
        guard let head = bytes(count: RefusalRing.firstHead + 8, at: offset(of: slot)),
            head[0] == SlotKind.first.rawValue
        else { return nil }
        let count = Int(head[1])
        let values = (0..<6).map { RefusalRing.word(of: head, at: 8 + 8 * $0) }
        let (length, sequence, id) = (Int(truncatingIfNeeded: values[0]), values[1], (values[2], values[3]))
        let time = Int64(bitPattern: values[5])
        guard (0...RefusalRing.longestRecord).contains(length), slot + count <= slots,
            RefusalRing.slotCount(of: length) == count
        else { return nil }
        var text: [UInt8] = []
        text.reserveCapacity(length)
        for index in 0..<count {
            let skipped = index == 0 ? RefusalRing.firstHead + 8 : RefusalRing.restHead
            let part = min(RefusalRing.slotBytes - skipped, length - text.count)
            guard let read = bytes(count: part, at: offset(of: slot + index) + skipped) else { return nil }
            text += read
        }
        let sum = RefusalRing.hash.hash(text.span).low ^ UInt64(bitPattern: time) ^ sequence
        guard sum == values[4] else { return nil }
        return (Record(time: time, bytes: text), id, sequence)
    }

    // MARK: The file

    /// Reads the header; false if it is not the header of a file of this size.
    private func load() -> Bool {
        let values = words(count: 5, at: 0)
        guard values.count == 5, values[0] == RefusalRing.magic, values[1] == UInt64(slots),
            values[2] < UInt64(slots)
        else { return false }
        (head, sequence, hasWrapped) = (Int(values[2]), values[3], values[4] == 1)
        return true
    }

    private func reset() -> Bool {
        (head, sequence, hasWrapped) = (0, 0, false)
        // The file grows with its records. The index exists from the start, as a hole in a sparse file.
        let length = offset(of: 0)
        return ftruncate(file, 0) == 0 && ftruncate(file, off_t(length)) == 0 && writeHeader()
    }

    private func writeHeader() -> Bool {
        let values = [RefusalRing.magic, UInt64(slots), UInt64(head), sequence, hasWrapped ? 1 : 0]
        return write(RefusalRing.words(values), at: 0)
    }

    private func offset(of slot: Int) -> Int {
        offset(ofBucket: buckets) + slot * RefusalRing.slotBytes
    }

    private func offset(ofBucket bucket: Int) -> Int {
        RefusalRing.headerBytes + bucket * RefusalRing.cellsOfBucket * MemoryLayout<UInt64>.size
    }

    private func offset(ofBucketOf id: (UInt64, UInt64)) -> Int {
        offset(ofBucket: Int(id.1 % UInt64(buckets)))
    }

    private static func tag(of id: (UInt64, UInt64)) -> UInt64 { id.0 << 32 }

    private static func words(_ values: [UInt64]) -> [UInt8] {
        values.flatMap { value in (0..<8).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) } }
    }

    private static func word(of bytes: [UInt8], at start: Int) -> UInt64 {
        (0..<8).reduce(0) { $0 | UInt64(bytes[start + $1]) << UInt64(8 * $1) }
    }

    private func words(count: Int, at offset: Int) -> [UInt64] {
        guard let bytes = bytes(count: 8 * count, at: offset) else { return [] }
        return (0..<count).map { RefusalRing.word(of: bytes, at: 8 * $0) }
    }

    /// Nil unless all bytes can be read.
    private func bytes(count: Int, at offset: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return pread(file, &bytes, count, off_t(offset)) == count ? bytes : nil
    }

    private func write(_ bytes: [UInt8], at offset: Int) -> Bool {
        pwrite(file, bytes, bytes.count, off_t(offset)) == bytes.count
    }
}
