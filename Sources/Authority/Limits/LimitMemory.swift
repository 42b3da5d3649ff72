import CountersignGate
import CountersignSeal
import CountersignWire

/// The memory of all tables of limits, in one piece, so that a process that takes over counts on where it is.
///
/// `"CSLIMMM1" ‖ sets (8) ‖ 4 × hash key (16)` in the first page; then the tables, by ``LoginLimits/Kind``.
struct LimitMemory: Sendable {
    private static let magic: UInt64 = 0x314D_4D4D_494C_5343
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

    init(sharing descriptor: FileDescriptor, capacity: Int) throws(Fault) {
        memory = try SharedMemory(sharing: descriptor, bytes: LimitMemory.bytes(capacity))
        guard memory.start.load(as: UInt64.self) == LimitMemory.magic,
            memory.start.load(fromByteOffset: 8, as: Int.self) == LimitTable.setCount(capacity: capacity)
        else { throw Fault(.failed, "the limits on logins that were handed over are of another kind") }
    }

    var descriptor: FileDescriptor? { memory.descriptor }

    func table(
        _ kind: LoginLimits.Kind, _ allowance: Allowance, _ capacity: Int, _ origin: LimitTable.Origin
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
