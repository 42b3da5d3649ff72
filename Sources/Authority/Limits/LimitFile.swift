import CountersignGate
import CountersignSeal
import CountersignWire
import Glibc

/// The tables of the limits in one file of mode 0600, replaced as a whole, so that the counts survive the
/// process.
///
/// `"CSLIMFL2"`, then `length (4, big-endian) ‖ snapshot` for each ``LoginLimits/Kind``, in order. Each
/// snapshot has its own digest, which detects a torn write.
package struct LimitFile: Sendable {
    private static let magic = Array("CSLIMFL2".utf8)

    private let path: String

    package init(_ path: String) { self.path = path }

    package enum Found: Sendable {
        case none
        case limits(LoginLimits)
        /// The file exists, but is incomplete or belongs to tables of another size.
        case damaged
    }

    /// The limits as they were when the file was written.
    package func read(_ rules: LoginLimits.Rules, at now: Int64) throws(OperationalError) -> Found {
        guard let bytes = try contents() else { return .none }
        guard let snapshots = LimitFile.split(bytes) else { return .damaged }
        do {
            return .limits(try LoginLimits(rules, restoring: snapshots, at: now))
        } catch {
            return .damaged
        }
    }

    /// Writes the whole file or nothing: to a draft, which is synced and then renamed.
    package func write(_ snapshots: [LoginLimits.Kind: [UInt8]]) throws(OperationalError) {
        var bytes = LimitFile.magic
        for kind in LoginLimits.Kind.allCases {
            let snapshot = snapshots[kind] ?? []
            bytes += (0..<4).map { UInt8(truncatingIfNeeded: snapshot.count >> (24 - 8 * $0)) } + snapshot
        }
        try KeyFile.replace(path, by: bytes)
    }

    private static func split(_ bytes: [UInt8]) -> [LoginLimits.Kind: [UInt8]]? {
        guard bytes.starts(with: magic) else { return nil }
        var snapshots: [LoginLimits.Kind: [UInt8]] = [:]
        var start = magic.count
        for kind in LoginLimits.Kind.allCases {
            guard bytes.count - start >= 4 else { return nil }
            let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            guard bytes.count - start - 4 >= length else { return nil }
            snapshots[kind] = Array(bytes[start + 4..<start + 4 + length])
            start += 4 + length
        }
        return start == bytes.count ? snapshots : nil
    }

    /// Nil if there is no such file.
    private func contents() throws(OperationalError) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        if file < 0, errno == ENOENT { return nil }
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw OperationalError(.unreachable, message: "\(path): not a file")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let here = bytes.withUnsafeMutableBytes {
                Glibc.read(file, $0.baseAddress.map { $0 + count }, $0.count - count)
            }
            if here < 0, errno == EINTR { continue }
            guard here >= 0 else {
                throw SystemCallError(errno, while: "\(path): cannot read").fault(.unreachable)
            }
            if here == 0 { break }
            count += here
        }
        return Array(bytes.prefix(count))
    }
}

/// The memory of all limit tables, in one piece, so that a successor process continues the counts.
///
/// `"CSLIMMM2" ‖ sets (8) ‖ a hash key (16) for each table` in the first page; then the tables, by
/// ``LoginLimits/Kind``. Memory with another first word is of another version; the successor then counts in
/// tables of its own, from the file.
struct LimitMemory: Sendable {
    private static let magic: UInt64 = 0x324D_4D4D_494C_5343
    private static let headBytes = 4096

    private let memory: SharedMemory

    init(capacity: Int, keys: [KeyedHash.Key]) {
        memory = SharedMemory("countersign-login-limits", bytes: LimitMemory.bytes(capacity))
        memory.start.storeBytes(of: LimitMemory.magic, as: UInt64.self)
        memory.start.storeBytes(of: LimitTable.setCount(capacity: capacity), toByteOffset: 8, as: Int.self)
        for (index, key) in keys.enumerated() {
            for byte in key.indices {
                memory.start.storeBytes(of: key[byte], toByteOffset: 16 + index * 16 + byte, as: UInt8.self)
            }
        }
    }

    init(sharing descriptor: FileDescriptor, capacity: Int) throws(OperationalError) {
        memory = try SharedMemory(sharing: descriptor, bytes: LimitMemory.bytes(capacity))
        guard memory.start.load(as: UInt64.self) == LimitMemory.magic,
            memory.start.load(fromByteOffset: 8, as: Int.self) == LimitTable.setCount(capacity: capacity)
        else {
            throw OperationalError(
                .failed, message: "the limits on logins that were handed over are of another kind")
        }
    }

    var descriptor: FileDescriptor? { memory.descriptor }

    func table(
        _ kind: LoginLimits.Kind, limit allowance: RateLimit, capacity: Int, origin: LimitTable.Origin
    ) -> LimitTable {
        let index = LoginLimits.Kind.allCases.firstIndex(of: kind) ?? 0
        let key = KeyedHash.Key { memory.start.load(fromByteOffset: 16 + index * 16 + $0, as: UInt8.self) }
        return LimitTable(
            allowance, capacity: capacity, hashKey: key, in: memory,
            at: LimitMemory.headBytes + index * LimitTable.bytes(capacity: capacity), origin: origin)
    }

    private static func bytes(_ capacity: Int) -> Int {
        headBytes + LoginLimits.Kind.allCases.count * LimitTable.bytes(capacity: capacity)
    }
}
