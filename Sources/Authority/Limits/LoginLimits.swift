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

    /// The networks around an IPv6 network of 64 bits that one subscriber may have: 56 bits is what a
    /// household is given, 48 bits a site. Empty for IPv4. Source: RFC 6177 §2.
    var networks: [Network] {
        bytes.count == 8 ? [.household(Array(bytes[..<7])), .site(Array(bytes[..<6]))] : []
    }

    /// Unambiguous keys of the widest network around it, of those within, and of the origin itself, in this
    /// order.
    package var nestedKeys: [[UInt8]] {
        networks.reversed().map(\.key) + [[UInt8(8 * bytes.count)] + bytes]
    }

    enum Network {
        case household([UInt8])
        case site([UInt8])

        /// Unambiguous, with a use of the network's limits after it.
        var key: [UInt8] {
            switch self {
            case .household(let prefix): [56] + prefix
            case .site(let prefix): [48] + prefix
            }
        }

        /// The limit of the network, derived from that of one address. Its burst is slightly larger than that
        /// of one address, and far smaller than the sum for its 256 or 65,536 networks of 64 bits. Its refill
        /// takes many addresses to use up, because a carrier assigns each subscriber 64 bits of one network.
        /// It has no debt, which the next subscriber would have to wait off.
        func limit(_ address: RateLimit, refill: Refill) -> RateLimit {
            switch self {
            case .household: address.scaled(by: 3, over: 2, refilling: refill.household)
            case .site: address.scaled(by: 2, over: 1, refilling: refill.site)
            }
        }
    }

    /// How many times as fast as an address's the allowance of a network refills.
    enum Refill {
        /// Attempts: as many addresses together can keep it used up.
        case attempts
        /// Steps that cost a look-up and no more: it takes a large number of addresses to use them up.
        case lookUps

        var household: Int {
            switch self {
            case .attempts: 4
            case .lookUps: 16
            }
        }

        var site: Int {
            switch self {
            case .attempts: 16
            case .lookUps: 250
            }
        }
    }

    /// The widest part that stands for one provider or site: the network of 48 bits, or the IPv4 address.
    var widest: [UInt8] { bytes.count == 8 ? Array(bytes[..<6]) : bytes }
}

/// The limits on password guesses. The start of a login is debited, because it is the guess; a login that
/// is verified is refunded, so that logins with the right password are not limited.
///
/// An unknown caller is counted by address, by the IPv6 networks of 56 and 48 bits around it, and by account.
/// A device that has proved its key is counted by account and device only: unknown callers that exhaust the
/// account's or the address's allowance do not lock it out, and cannot write to its counter. Names are
/// counted whether or not there is such an account: the store is not asked, so known and unknown names are
/// answered alike.
///
/// Address and networks are asked before the account, and keep the debit of a start that the account's limit
/// refuses: a caller that keeps an account's limit exhausted exhausts its own. Where a network refuses, the
/// address alone keeps the debit. Source: docs/decisions/0014-login-limits.md.
package struct LoginLimits: Sendable {
    /// The limits, and the number of keys that each table has room for. The limits of IPv6 networks follow
    /// from those of addresses.
    package struct Rules: Sendable {
        package var account = RateLimit(burst: 10, refillInterval: .seconds(60))
        /// More, since many people may share an address; a verified login costs it nothing. A refused start
        /// is charged, up to ``mostDebt``.
        package var address = RateLimit(burst: 50, refillInterval: .seconds(10))
        /// For unknown callers that have worked for it, by account. A hard bound: work is cheap for an
        /// attacker with the right hardware.
        package var solved = RateLimit(burst: 32, refillInterval: .seconds(60))
        package var device = RateLimit(burst: 10, refillInterval: .seconds(30))
        /// By address and ``Work``: steps that cost work and did not succeed.
        package var work = RateLimit(burst: 60, refillInterval: .seconds(1))
        package var capacity = 1 << 18

        /// The most by which refused starts delay an address. An address that goes on at full speed gets
        /// nothing through; the others behind the same address wait a minute after it has stopped.
        package static let mostDebt = Duration.seconds(60)

        /// What a start with a solution counts at its address and networks, in starts, in buckets that only
        /// such starts debit. An address gets little more than two through in five minutes, fewer than grow
        /// back in an account's ``solved``.
        package static let solutionWeight = 12

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
        case retry(after: Int, for: Exhausted = .caller)
    }

    /// Whose allowance is used up.
    package enum Exhausted: Sendable, Equatable {
        /// The address, a network around it, or the known device.
        case caller
        /// The account, for all unknown callers together.
        case account

        /// The second part of a start is the account's.
        init(part: Int) { self = part == 0 ? .caller : .account }
    }

    /// The debits of a start. Keep it with the login and refund it once, when the login is verified.
    package struct Receipt: Sendable, Equatable {
        var debits: [KindDebit] = []
        /// Those that nodes count together, in a store.
        var shared: [SharedDebit] = []

        /// Whether this process alone has counted it.
        package var isOwn: Bool { shared.isEmpty }
    }

    struct KindDebit: Sendable, Equatable {
        let kind: Kind
        let debit: LimitTable.Debit
    }

    /// The tables.
    package enum Kind: UInt8, Sendable, CaseIterable {
        case account, address, device, work
        /// IPv6 networks of 56 and 48 bits, for starts and for ``Work``.
        case network
        /// Accounts, for unknown callers that have solved a ``LoginWork``.
        case solved
    }

    /// Steps that cost more than a lookup before the caller is identified.
    package enum Work: UInt8, Sendable {
        /// The look-ups of a device that a proof names, if the account does not know it.
        case deviceProof
        /// A registration's record: opening a sealed box, and perhaps a write to the disk.
        case registrationRecord
    }

    private let rules: Rules
    private let memory: LimitMemory
    private let account: LimitTable
    private let address: LimitTable
    private let device: LimitTable
    private let work: LimitTable
    private let network: LimitTable
    private let solved: LimitTable

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
        self.rules = rules
        self.memory = memory
        func table(_ kind: Kind, limit: RateLimit) -> LimitTable {
            memory.table(kind, limit: limit, capacity: rules.capacity, origin: origin)
        }
        account = table(.account, limit: rules.account)
        address = table(.address, limit: rules.address.charging(refusalsUpTo: Rules.mostDebt))
        device = table(.device, limit: rules.device)
        work = table(.work, limit: rules.work)
        // Each key is counted by the limit of its network.
        network = table(.network, limit: rules.address)
        solved = table(.solved, limit: rules.solved)
    }

    /// The memory for a process that is to count together with this one; nil if it cannot be shared.
    package var sharing: FileDescriptor? { memory.descriptor }

    private func table(_ kind: Kind) -> LimitTable {
        switch kind {
        case .account: account
        case .address: address
        case .device: device
        case .work: work
        case .network: network
        case .solved: solved
        }
    }

    /// Counts the start of a login, or returns when one would be allowed. `now` is in milliseconds since
    /// 1970. A start that the account's limit refuses stays counted for its address.
    package func start(app: AppName, account: AccountName, from caller: Caller, at now: Int64) -> Decision {
        debit(parts: startCharges(app: app, account: account, from: caller), at: now)
    }

    /// The parts of a start, of which the second is asked once all of the first are allowed.
    func startCharges(app: AppName, account: AccountName, from caller: Caller) -> [[Charge]] {
        let name = LoginLimits.key(of: account, app: app)
        switch caller {
        case .knownDevice(let device): return [[Charge(.device, key: name + [0] + device)]]
        case .stranger(let address):
            return [charges(to: address, in: .address), [Charge(.account, key: name)]]
        }
    }

    /// The same for an unknown caller that has solved a ``LoginWork``: it counts more at the address and its
    /// networks, in buckets that callers without a solution cannot use up, as that of the account. One
    /// network cannot use up the account's.
    package func startSolved(
        app: AppName, account: AccountName, from address: ClientAddress, at now: Int64
    ) -> Decision {
        debit(parts: solvedStartCharges(app: app, account: account, from: address), at: now)
    }

    func solvedStartCharges(app: AppName, account: AccountName, from address: ClientAddress) -> [[Charge]] {
        let name = LoginLimits.key(of: account, app: app)
        return [solutionCharges(to: address, for: name), [Charge(.solved, key: name)]]
    }

    private func debit(parts: [[Charge]], at now: Int64) -> Decision {
        var receipt = Receipt()
        for (place, part) in parts.enumerated() {
            switch debit(part, at: now) {
            case .allowed(let part): receipt.debits += part.debits
            case .retry(let seconds, _): return .retry(after: seconds, for: Exhausted(part: place))
            }
        }
        return .allowed(receipt)
    }

    /// How many solutions of the account are used up; nil if none would be accepted now.
    package func solutionsUsed(app: AppName, account: AccountName, at now: Int64) -> Int? {
        let used = solved.used(LoginLimits.key(of: account, app: app).span, at: now)
        return used < solved.limit.burst ? used : nil
    }

    /// The same, and nil if the address, or a network around it, has no solution left: a caller that cannot
    /// use a solution is not to work for one.
    package func solutionsUsed(
        app: AppName, account: AccountName, from address: ClientAddress, at now: Int64
    ) -> Int? {
        let charges = solvedStartCharges(app: app, account: account, from: address)[0]
        let isOpen = charges.allSatisfy { charge in
            table(charge.kind).allows(
                charge.key.span, limit: charge.limit, weight: charge.weight, at: now)
        }
        return isOpen ? solutionsUsed(app: app, account: account, at: now) : nil
    }

    private func solutionCharges(to address: ClientAddress, for account: [UInt8]) -> [Charge] {
        let ofAccount = address.networks.last.map { network in
            Charge(
                .network, key: network.key + [LoginLimits.solutionUse] + account,
                // Refills slower than the account's own, which one network can therefore not keep used up.
                limit: rules.address.scaled(by: 3, over: 2))
        }
        let all =
            charges(to: address, in: .address, use: [LoginLimits.solutionUse])
            + (ofAccount.map { [$0] } ?? [])
        return all.map { charge in
            var charge = charge
            charge.weight = Rules.solutionWeight
            return charge
        }
    }

    /// Tells the buckets of starts with a solution from those of ``Work``.
    private static let solutionUse: UInt8 = 2

    /// The parts are unambiguous: neither app nor account contains a NUL.
    private static func key(of account: AccountName, app: AppName) -> [UInt8] {
        Array(app.description.utf8) + [0] + account.bytes
    }

    /// Counts the start of a registration by address alone, since it reveals nothing about any account. It
    /// is never refunded, because the creation of accounts is to be limited.
    package func startRegistration(from address: ClientAddress, at now: Int64) -> Decision {
        debit(registrationCharges(from: address), at: now)
    }

    func registrationCharges(from address: ClientAddress) -> [Charge] { charges(to: address, in: .address) }

    /// Counts work before it is done, by address, in a table of its own: it is independent of the login
    /// limits of callers at the same address. Refund it if the step succeeded.
    package func start(_ work: Work, from address: ClientAddress, at now: Int64) -> Decision {
        let refill: ClientAddress.Refill =
            switch work {
            case .deviceProof: .lookUps
            case .registrationRecord: .attempts
            }
        return debit(charges(to: address, in: .work, use: [work.rawValue], refill: refill), at: now)
    }

    /// Counts the check of a device's proof before it is made, where the account knows the device: by
    /// account, device, and the caller's widest network. Others cannot use it up, unless they have seen the
    /// device's key and are in the same network; and one device admits only so many checks from there,
    /// whatever the address. Refund it if the proof holds.
    package func startProof(
        app: AppName, account: AccountName, of device: [UInt8], from address: ClientAddress, at now: Int64
    ) -> Decision {
        // Longer than any address with its use, so no other key of the table is the same.
        let key = LoginLimits.key(of: account, app: app) + [0] + device + address.widest
        return debit([Charge(.work, key: key)], at: now)
    }

    /// One debit of several.
    struct Charge {
        let kind: Kind
        let key: [UInt8]
        /// Nil for the table's own.
        var limit: RateLimit?
        /// How many attempts it counts as.
        var weight = 1

        init(_ kind: Kind, key: [UInt8], limit: RateLimit? = nil) {
            self.kind = kind
            self.key = key
            self.limit = limit
        }
    }

    /// The debits of a caller, from its address to the widest network. An address that is used up is refused
    /// by itself, and costs its networks nothing: one subscriber must not use up the allowance of a
    /// provider's whole network.
    private func charges(
        to address: ClientAddress, in kind: Kind, use: [UInt8] = [], refill: ClientAddress.Refill = .attempts
    ) -> [Charge] {
        let limit = kind == .address ? rules.address : rules.work
        return [Charge(kind, key: address.bytes + use)]
            + address.networks.map { network in
                Charge(.network, key: network.key + use, limit: network.limit(limit, refill: refill))
            }
    }

    /// Makes all debits, or those before the first that is refused. Of those, the debits of limits that
    /// charge for refusals stay, as the price of the refused attempt; the others are refunded.
    private func debit(_ charges: [Charge], at now: Int64) -> Decision {
        var receipt = Receipt()
        for charge in charges {
            switch table(charge.kind).debit(
                charge.key.span, limit: charge.limit, weight: charge.weight, at: now)
            {
            case .allowed(let debit): receipt.debits.append(KindDebit(kind: charge.kind, debit: debit))
            case .refused(let wait):
                for entry in receipt.debits where table(entry.kind).limit.mostDebt == 0 {
                    table(entry.kind).refund(entry.debit, at: now)
                }
                return .retry(after: LoginLimits.seconds(wait))
            }
        }
        return .allowed(receipt)
    }

    func limit(of charge: Charge) -> RateLimit { charge.limit ?? table(charge.kind).limit }

    static func seconds(_ wait: Int64) -> Int { Int(clamping: (wait + 999) / 1000) }

    /// Refunds the debits of a verified login, whose start was no guess.
    package func refund(_ receipt: Receipt, at now: Int64) {
        for entry in receipt.debits { table(entry.kind).refund(entry.debit, at: now) }
    }

    /// Refunds all but what its address is to pay: for a solution that another start used meanwhile.
    package func refundAllButAddress(_ receipt: Receipt, at now: Int64) {
        for entry in receipt.debits where entry.kind != .address {
            table(entry.kind).refund(entry.debit, at: now)
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

    /// Restores the limits from the snapshots of all kinds.
    package init(_ rules: Rules, restoring snapshots: [Kind: [UInt8]], at now: Int64) throws(LimitTable
        .SnapshotError)
    {
        try self.init(rules) { (kind: Kind) throws(LimitTable.SnapshotError) in
            guard let snapshot = snapshots[kind] else { throw .malformed }
            return try LimitTable.hashKey(of: snapshot)
        }
        for kind in Kind.allCases {
            if let snapshot = snapshots[kind] { try table(kind).restore(snapshot, at: now) }
        }
    }
}
