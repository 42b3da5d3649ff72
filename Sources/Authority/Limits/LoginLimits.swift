import CountersignGate
import CountersignSeal
import CountersignWire

/// The origin of a connection, as far as parties can be told apart: an IPv4 address, or an IPv6 network of
/// 64 bits, within which one subscriber chooses addresses freely. Source: RFC 6177, RFC 7421.
package struct ClientAddress: Sendable, Hashable {
    /// Four bytes or eight.
    package let bytes: [UInt8]

    /// From the address in network order: 4 bytes, or 16. An IPv4-mapped IPv6 address gives the IPv4
    /// address. Nil for any other count. Source: RFC 4291 §2.5.5.2.
    package init?(_ address: Span<UInt8>) {
        switch address.count {
        case 4: bytes = address.withUnsafeBufferPointer { Array($0) }
        case 16:
            let isMapped =
                (0..<10).allSatisfy { address[$0] == 0 } && address[10] == 0xFF && address[11] == 0xFF
            bytes = address.withUnsafeBufferPointer { Array(isMapped ? $0[12..<16] : $0[0..<8]) }
        default: return nil
        }
    }

    /// Stands for all unknown addresses together: `0.0.0.0`, which no client has.
    package static let unknown = ClientAddress(known: [0, 0, 0, 0])

    private init(known bytes: [UInt8]) { self.bytes = bytes }
}

/// The limits on password guesses. The start of a login is debited, because it is the guess; a login that
/// is verified is refunded, so that logins with the right password are not limited.
///
/// An unknown caller is counted by address and by account. A device that has proved its key is counted by
/// account and device only: unknown callers that exhaust the account's or the address's allowance do not
/// lock it out, and cannot write to its counter. Names are counted whether or not there is such an account:
/// the store is not asked, so known and unknown names are answered alike.
package struct LoginLimits: Sendable {
    /// The limits, and the number of keys that each table has room for.
    package struct Rules: Sendable {
        package var account = RateLimit(burst: 10, refillInterval: .seconds(60))
        /// More, since many people may share an address; a verified login costs it nothing.
        package var address = RateLimit(burst: 50, refillInterval: .seconds(10))
        package var device = RateLimit(burst: 10, refillInterval: .seconds(30))
        /// By address and ``Work``: steps that cost work and did not succeed.
        package var work = RateLimit(burst: 60, refillInterval: .seconds(1))
        package var capacity = 1 << 18

        package init() {}
    }

    package enum Caller: Sendable {
        case stranger(ClientAddress)
        /// A device whose signature over this start was verified under the key that is bound to the
        /// account.
        case knownDevice([UInt8])
    }

    package enum Decision: Sendable, Equatable {
        case allowed(Receipt)
        /// Whole seconds, at least 1.
        case retry(after: Int)
    }

    /// The debits of a start. Keep it with the login and refund it once, when the login is verified.
    package struct Receipt: Sendable, Equatable {
        fileprivate var debits: [Kind: LimitTable.Debit] = [:]
    }

    /// The tables.
    package enum Kind: UInt8, Sendable, CaseIterable { case account, address, device, work }

    /// Steps that cost more than a lookup before the caller is identified.
    package enum Work: UInt8, Sendable {
        /// A device's proof: lookups and a signature check.
        case deviceProof
        /// A registration's record: opening a sealed box, and perhaps a write to the disk.
        case registrationRecord
    }

    private let memory: LimitMemory
    private let account: LimitTable
    private let address: LimitTable
    private let device: LimitTable
    private let work: LimitTable

    package init(_ rules: Rules = Rules(), random: some RandomSource = SystemRandom()) {
        self.init(rules) { _ in
            let bytes = random.bytes(16)
            return KeyedHash.Key { bytes[$0] }
        }
    }

    private init<Failure: Error>(_ rules: Rules, key: (Kind) throws(Failure) -> KeyedHash.Key) throws(Failure)
    {
        var keys: [KeyedHash.Key] = []
        for kind in Kind.allCases { keys.append(try key(kind)) }
        self.init(rules, in: LimitMemory(capacity: rules.capacity, keys: keys), origin: .new)
    }

    /// Counts together with another process, in its memory.
    package init(_ rules: Rules, sharing descriptor: FileDescriptor) throws(OperationalError) {
        self.init(
            rules, in: try LimitMemory(sharing: descriptor, capacity: rules.capacity),
            origin: .ofAnotherProcess)
    }

    private init(_ rules: Rules, in memory: LimitMemory, origin: LimitTable.Origin) {
        self.memory = memory
        account = memory.table(.account, limit: rules.account, capacity: rules.capacity, origin: origin)
        address = memory.table(.address, limit: rules.address, capacity: rules.capacity, origin: origin)
        device = memory.table(.device, limit: rules.device, capacity: rules.capacity, origin: origin)
        work = memory.table(.work, limit: rules.work, capacity: rules.capacity, origin: origin)
    }

    /// The memory for a process that is to count together with this one; nil if it cannot be shared.
    package var sharing: FileDescriptor? { memory.descriptor }

    private func table(_ kind: Kind) -> LimitTable {
        switch kind {
        case .account: account
        case .address: address
        case .device: device
        case .work: work
        }
    }

    /// Counts the start of a login, or returns when one would be allowed. `now` is in milliseconds since
    /// 1970.
    package func start(app: AppName, account: AccountName, from caller: Caller, at now: Int64) -> Decision {
        var receipt = Receipt()
        for (kind, key) in LoginLimits.keys(app: app, account: account, caller: caller) {
            switch table(kind).debit(key.span, at: now) {
            case .allowed(let debit): receipt.debits[kind] = debit
            case .refused(let wait):
                // All debits or none: a refused start is not a guess.
                refund(receipt, at: now)
                return .retry(after: Int(clamping: (wait + 999) / 1000))
            }
        }
        return .allowed(receipt)
    }

    /// Counts the start of a registration by address alone, since it reveals nothing about any account. It
    /// is never refunded, because the creation of accounts is to be limited.
    package func startRegistration(from address: ClientAddress, at now: Int64) -> Decision {
        debit(.address, key: address.bytes, at: now)
    }

    /// Counts work before it is done, by address, in a table of its own: it is independent of the login
    /// limits of callers at the same address. Refund it if the step succeeded.
    package func start(_ work: Work, from address: ClientAddress, at now: Int64) -> Decision {
        debit(.work, key: address.bytes + [work.rawValue], at: now)
    }

    private func debit(_ kind: Kind, key: [UInt8], at now: Int64) -> Decision {
        switch table(kind).debit(key.span, at: now) {
        case .allowed(let debit): .allowed(Receipt(debits: [kind: debit]))
        case .refused(let wait): .retry(after: Int(clamping: (wait + 999) / 1000))
        }
    }

    /// Refunds the debits of a verified login, whose start was no guess.
    package func refund(_ receipt: Receipt, at now: Int64) {
        for (kind, debit) in receipt.debits { table(kind).refund(debit, at: now) }
    }

    /// The parts are unambiguous: neither app nor account contains a NUL.
    private static func keys(app: AppName, account: AccountName, caller: Caller) -> [(Kind, [UInt8])] {
        let name = Array(app.description.utf8) + [0] + account.bytes
        switch caller {
        case .stranger(let address): return [(.address, address.bytes), (.account, name)]
        case .knownDevice(let device): return [(.device, name + [0] + device)]
        }
    }
}

extension LoginLimits {
    /// A number that differs after any attempt was counted.
    package var changes: UInt64 { Kind.allCases.reduce(0) { $0 &+ table($1).changes } }

    /// One snapshot of each table, by kind.
    package func snapshots(at now: Int64) -> [Kind: [UInt8]] {
        var snapshots: [Kind: [UInt8]] = [:]
        for kind in Kind.allCases { snapshots[kind] = table(kind).snapshot(at: now) }
        return snapshots
    }

    /// Restores the limits from the snapshots of all kinds. Throws for anything else.
    package init(_ rules: Rules, restoring snapshots: [Kind: [UInt8]], at now: Int64) throws(LimitTable
        .SnapshotError)
    {
        try self.init(rules) { (kind: Kind) throws(LimitTable.SnapshotError) in
            guard let snapshot = snapshots[kind] else { throw .malformed }
            return try LimitTable.hashKey(of: snapshot)
        }
        for kind in Kind.allCases { try table(kind).restore(snapshots[kind] ?? [], at: now) }
    }
}
