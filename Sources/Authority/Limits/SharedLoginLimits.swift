import CountersignGate
import CountersignMemory
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// The limits on guesses that several nodes count together, in the store that they share: each start of a
/// login is one statement there, so that no number of nodes gives more guesses than one. If the store does
/// not answer, no guess is admitted. Source: docs/decisions/0075-logins-over-nodes.md.
///
/// The buckets are those of ``LoginLimits``. A bucket's key hashes to one of 2^20 slots of its kind, by a
/// key that is derived from the deployment's: the table is bounded, and keys that meet in a slot have one
/// allowance together, so that none is ever credited with fewer attempts than it made.
package struct SharedLoginLimits: Sendable {
    static let slotCount: UInt64 = 1 << 20
    /// Milliseconds for which a node refuses a caller without asking again, once the store has refused it.
    private static let memory: Int64 = 1_000

    private let rules: LoginLimits
    private let store: any SharedLoginStore
    private let hash: KeyedHash
    /// When a caller's bucket, by place, admits the next attempt.
    private let refusals = BriefMemory()
    /// What ``solutionsUsed(app:account:from:)`` has returned.
    private let offers = BriefMemory()

    /// `rules` has the limits; its own counts are not used.
    package init(_ rules: LoginLimits, keys: AccountKeys, in store: any SharedLoginStore) {
        (self.rules, self.store) = (rules, store)
        let key = HKDFSHA512.expand(
            keys.keys.bytes, info: Array("countersign/1 login limits".utf8), count: 16)
        hash = key.withExposedBytes { bytes in KeyedHash(key: KeyedHash.Key { bytes[$0] }) }
    }

    /// The same as ``LoginLimits/start(app:account:from:at:)``.
    package func start(
        app: AppName, account: AccountName, from caller: LoginLimits.Caller
    ) throws(OperationalError) -> LoginLimits.Decision {
        try debit(rules.startCharges(app: app, account: account, from: caller))
    }

    /// The same as ``LoginLimits/startSolved(app:account:from:at:)``.
    package func startSolved(
        app: AppName, account: AccountName, from address: ClientAddress
    ) throws(OperationalError) -> LoginLimits.Decision {
        try debit(rules.solvedStartCharges(app: app, account: account, from: address))
    }

    /// The same as ``LoginLimits/startRegistration(from:at:)``.
    package func startRegistration(
        from address: ClientAddress
    ) throws(OperationalError) -> LoginLimits.Decision {
        try debit([rules.registrationCharges(from: address)])
    }

    /// The same as ``LoginLimits/solutionsUsed(app:account:at:)``.
    package func solutionsUsed(
        app: AppName, account: AccountName
    ) throws(OperationalError) -> Int? {
        let charges = rules.solvedStartCharges(app: app, account: account, from: .unknown)
        return try solutionsUsed(of: charges[1], allowing: [])
    }

    /// The same as ``LoginLimits/solutionsUsed(app:account:from:at:)``, as it was within the last second.
    package func solutionsUsed(
        app: AppName, account: AccountName, from address: ClientAddress
    ) throws(OperationalError) -> Int? {
        let parts = rules.solvedStartCharges(app: app, account: account, from: address)
        let key = hash.hash((parts[1][0].key + [0] + address.bytes).span).low
        let now = NodeLease.now
        if let known = offers.value(of: key, at: now) { return known < 0 ? nil : Int(known) }
        let used = try solutionsUsed(of: parts[1], allowing: parts[0])
        offers.set(key, to: Int64(used ?? -1), until: now + SharedLoginLimits.memory)
        return used
    }

    /// Nil if one of the callers' charges would be refused, or the account's.
    private func solutionsUsed(
        of account: [LoginLimits.Charge], allowing others: [LoginLimits.Charge]
    ) throws(OperationalError) -> Int? {
        let charges = (others + account).map { self.charge($0, part: 0) }
        let (now, times) = try store.loginLimits(at: charges.map(\.place))
        guard times.count == charges.count, let last = charges.last, let time = times.last else { return nil }
        let isOpen = zip(charges, times).dropLast().allSatisfy { charge, time in
            max(time, now) + charge.cost <= now + charge.fullRefill
        }
        let owed = min(max(time - now, 0), last.fullRefill)
        let used = Int((owed + last.cost - 1) / last.cost)
        return isOpen && Int64(used) * last.cost < last.fullRefill ? used : nil
    }

    /// Takes back what was debited, as far as it has not refilled since; `isRefunded` says of which kinds.
    package func refund(
        _ receipt: LoginLimits.Receipt, of isRefunded: (LoginLimits.Kind) -> Bool = { _ in true }
    ) throws(OperationalError) {
        let debits = receipt.shared.filter { isRefunded($0.place.kind) }
        guard !debits.isEmpty else { return }
        try store.refundLogins(debits)
    }

    /// Removes the rows of buckets that are full.
    package func expire() throws(OperationalError) { try store.expireLoginLimits() }

    private func debit(_ parts: [[LoginLimits.Charge]]) throws(OperationalError) -> LoginLimits.Decision {
        let charges = parts.enumerated().flatMap { number, part in
            part.map { self.charge($0, part: number) }
        }
        let now = NodeLease.now
        for charge in charges {
            guard let end = refusals.value(of: charge.place.number, at: now) else { continue }
            return .retry(after: LoginLimits.seconds(max(end - now, 1)))
        }
        switch try store.debitLogins(charges) {
        case .allowed(let at):
            let debits = charges.map { SharedDebit(place: $0.place, cost: $0.cost, at: at) }
            return .allowed(LoginLimits.Receipt(shared: debits))
        case .refused(let index, let wait):
            let charge = charges[index]
            // A refusal for the account costs the caller's address each time.
            if charge.part == 0 {
                refusals.set(
                    charge.place.number, to: now + wait, until: now + min(wait, SharedLoginLimits.memory))
            }
            return .retry(after: LoginLimits.seconds(wait), for: LoginLimits.Exhausted(part: charge.part))
        }
    }

    private func charge(_ charge: LoginLimits.Charge, part: Int) -> SharedCharge {
        let limit = rules.limit(of: charge)
        let slot = hash.hash(charge.key.span).low % SharedLoginLimits.slotCount
        return SharedCharge(
            place: SharedLimitPlace(kind: charge.kind, slot: UInt32(slot)),
            cost: limit.interval * Int64(min(max(charge.weight, 1), limit.burst)),
            fullRefill: limit.fullRefill, mostDebt: limit.mostDebt, refusalCharge: limit.refusalCharge,
            part: part)
    }
}

/// Where a bucket is counted.
package struct SharedLimitPlace: Sendable, Hashable {
    package var kind: LoginLimits.Kind
    package var slot: UInt32

    package init(kind: LoginLimits.Kind, slot: UInt32) { (self.kind, self.slot) = (kind, slot) }

    var number: UInt64 { UInt64(kind.rawValue) << 32 | UInt64(slot) }
}

/// One debit of several. Times are in milliseconds, as those of ``RateLimit``.
package struct SharedCharge: Sendable, Equatable {
    package var place: SharedLimitPlace
    package var cost: Int64
    package var fullRefill: Int64
    package var mostDebt: Int64
    package var refusalCharge: Int64
    /// A refusal takes back the debits of its own part, except those of limits that charge for refusals.
    package var part: Int

    package init(
        place: SharedLimitPlace, cost: Int64, fullRefill: Int64, mostDebt: Int64 = 0,
        refusalCharge: Int64 = 1, part: Int = 0
    ) {
        (self.place, self.cost, self.fullRefill) = (place, cost, fullRefill)
        (self.mostDebt, self.refusalCharge, self.part) = (mostDebt, refusalCharge, part)
    }
}

package struct SharedDebit: Sendable, Equatable {
    package var place: SharedLimitPlace
    package var cost: Int64
    /// When it was made, by the store's clock.
    package var at: Int64

    package init(place: SharedLimitPlace, cost: Int64, at: Int64) {
        (self.place, self.cost, self.at) = (place, cost, at)
    }
}

package enum SharedDebitOutcome: Sendable, Equatable {
    /// When, by the store's clock.
    case allowed(at: Int64)
    /// The charge that was refused, and the milliseconds after which it would be allowed.
    case refused(index: Int, wait: Int64)
}

/// Numbers by key that are known for a short time. Bounded: while it is full, new ones are not kept.
private final class BriefMemory: Sendable {
    private static let capacity = 8_192

    private let entries = Locked<[UInt64: (value: Int64, until: Int64)]>([:])

    func value(of key: UInt64, at now: Int64) -> Int64? {
        entries.with { entries in
            guard let entry = entries[key], now < entry.until else { return nil }
            return entry.value
        }
    }

    func set(_ key: UInt64, to value: Int64, until end: Int64) {
        let now = NodeLease.now
        entries.with { entries in
            if entries.count >= BriefMemory.capacity { entries = entries.filter { now < $0.value.until } }
            guard entries.count < BriefMemory.capacity else { return }
            entries[key] = (value, end)
        }
    }
}

/// Debits as bytes, for a login that another node may finish: the number of this process's own (1), then
/// `kind (1) ‖ place (8) ‖ tag (8) ‖ at (8) ‖ cost (8)` each, which no other process finds in its tables; and
/// `kind (1) ‖ slot (4) ‖ at (8) ‖ cost (8)` for each that nodes count together.
extension LoginLimits.Receipt {
    var encoded: [UInt8] {
        var writer = PendingLoginState.Writer()
        writer.add(UInt64(debits.count), count: 1)
        for entry in debits {
            writer.add(UInt64(entry.kind.rawValue), count: 1)
            writer.add(entry.debit.place, count: 8)
            writer.add(entry.debit.tag, count: 8)
            writer.add(UInt64(bitPattern: entry.debit.at), count: 8)
            writer.add(UInt64(bitPattern: entry.debit.cost), count: 8)
        }
        for debit in shared {
            writer.add(UInt64(debit.place.kind.rawValue), count: 1)
            writer.add(UInt64(debit.place.slot), count: 4)
            writer.add(UInt64(bitPattern: debit.at), count: 8)
            writer.add(UInt64(bitPattern: debit.cost), count: 8)
        }
        return writer.bytes
    }

    /// Nil if the bytes are not what ``encoded`` returns.
    init?(encoded bytes: [UInt8]) {
        var reader = PendingLoginState.Reader(bytes: bytes[...])
        func kind() -> LoginLimits.Kind? {
            reader.number(count: 1).flatMap { LoginLimits.Kind(rawValue: UInt8($0)) }
        }
        guard let count = reader.number(count: 1) else { return nil }
        for _ in 0..<count {
            guard let kind = kind(), let place = reader.number(count: 8), let tag = reader.number(count: 8),
                let at = reader.number(count: 8), let cost = reader.number(count: 8)
            else { return nil }
            let debit = LimitTable.Debit(
                place: place, tag: tag, at: Int64(bitPattern: at), cost: Int64(bitPattern: cost))
            debits.append(LoginLimits.KindDebit(kind: kind, debit: debit))
        }
        while !reader.bytes.isEmpty {
            guard let kind = kind(), let slot = reader.number(count: 4), let at = reader.number(count: 8),
                let cost = reader.number(count: 8)
            else { return nil }
            shared.append(
                SharedDebit(
                    place: SharedLimitPlace(kind: kind, slot: UInt32(slot)), cost: Int64(bitPattern: cost),
                    at: Int64(bitPattern: at)))
        }
    }
}
