import CountersignGate
import CountersignSeal
import CountersignWire

/// How often a password may be guessed. Debited when a login starts, for that is when a guess is made; refunded when it
/// ends verified, so that whoever knows the password is never counted.
///
/// A stranger is counted by address and by account. A device that has proved its key is counted on its own, by account and
/// device, and by nothing else: strangers who use up the account's allowance, or the address's, do not lock it
/// out, nor can they write to its counter. Names are counted as they come, whether or not there is such an account: no
/// store is asked, so known and unknown ones are answered alike.
package struct LoginLimits: Sendable {
    /// The allowances, and how many keys each table has room for.
    package struct Rules: Sendable {
        package var account = Allowance(burst: 10, oneEach: .seconds(60))
        /// More, since many people may share one; a verified login costs it nothing.
        package var address = Allowance(burst: 50, oneEach: .seconds(10))
        package var device = Allowance(burst: 10, oneEach: .seconds(30))
        /// By address and ``Work``: steps that cost work and came to nothing.
        package var work = Allowance(burst: 60, oneEach: .seconds(1))
        package var capacity = 1 << 18

        package init() {}
    }

    package enum Caller: Sendable {
        case stranger(ClientAddress)
        /// A device whose signature over this start has been verified under the key that is bound to the account.
        case knownDevice([UInt8])
    }

    package enum Decision: Sendable, Equatable {
        case allowed(Receipt)
        /// Whole seconds, 1 at least.
        case retry(after: Int)
    }

    /// What a start was debited. To be kept with the login and handed back once, when it is verified.
    package struct Receipt: Sendable, Equatable {
        fileprivate var debits: [Kind: LimitTable.Debit] = [:]
    }

    /// Which of the tables.
    package enum Kind: UInt8, Sendable, CaseIterable { case account, address, device, work }

    /// What costs more than a look-up before it is known whose it is.
    package enum Work: UInt8, Sendable {
        /// A device's proof: look-ups and a signature.
        case deviceProof
        /// A registration's record: a sealed box, and perhaps a change at the writer's disk.
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

    private init<Failure: Error>(_ rules: Rules, key: (Kind) throws(Failure) -> KeyedHash.Key) throws(Failure) {
        var keys: [KeyedHash.Key] = []
        for kind in Kind.allCases { keys.append(try key(kind)) }
        self.init(rules, in: LimitMemory(capacity: rules.capacity, keys: keys), origin: .new)
    }

    /// Counts together with another process, in its memory.
    package init(_ rules: Rules, sharing descriptor: FileDescriptor) throws(Fault) {
        self.init(
            rules, in: try LimitMemory(sharing: descriptor, capacity: rules.capacity), origin: .ofAnotherProcess)
    }

    private init(_ rules: Rules, in memory: LimitMemory, origin: LimitTable.Origin) {
        self.memory = memory
        account = memory.table(.account, rules.account, rules.capacity, origin)
        address = memory.table(.address, rules.address, rules.capacity, origin)
        device = memory.table(.device, rules.device, rules.capacity, origin)
        work = memory.table(.work, rules.work, rules.capacity, origin)
    }

    /// For a process that is to count together with this one; nil where that cannot be.
    package var sharing: FileDescriptor? { memory.descriptor }

    private func table(_ kind: Kind) -> LimitTable {
        switch kind {
        case .account: account
        case .address: address
        case .device: device
        case .work: work
        }
    }

    /// Counts the start of a login, or says when one would be allowed. `now` is in milliseconds since 1970.
    package func start(app: AppName, account: AccountName, from caller: Caller, at now: Int64) -> Decision {
        var receipt = Receipt()
        for (kind, key) in LoginLimits.keys(app, account, caller) {
            switch table(kind).debit(key.span, at: now) {
            case .allowed(let debit): receipt.debits[kind] = debit
            case .refused(let wait):
                // All or nothing: no guess is made, so none is counted.
                refund(receipt, at: now)
                return .retry(after: Int(clamping: (wait + 999) / 1000))
            }
        }
        return .allowed(receipt)
    }

    /// Counts the start of a registration: by address alone, since it says nothing about any account. Not to be refunded: it
    /// is the making of accounts that is limited.
    package func startRegistration(from address: ClientAddress, at now: Int64) -> Decision {
        debit(.address, address.bytes, at: now)
    }

    /// Counts work before it is done. By address, in a table of its own: it takes nothing from the guesses of those who share the
    /// address, nor they from it. To be refunded where something came of it.
    package func start(_ work: Work, from address: ClientAddress, at now: Int64) -> Decision {
        debit(.work, address.bytes + [work.rawValue], at: now)
    }

    private func debit(_ kind: Kind, _ key: [UInt8], at now: Int64) -> Decision {
        switch table(kind).debit(key.span, at: now) {
        case .allowed(let debit): .allowed(Receipt(debits: [kind: debit]))
        case .refused(let wait): .retry(after: Int(clamping: (wait + 999) / 1000))
        }
    }

    /// The login of this receipt was verified: its start was no guess.
    package func refund(_ receipt: Receipt, at now: Int64) {
        for (kind, debit) in receipt.debits { table(kind).refund(debit, at: now) }
    }

    /// No part can be mistaken for another: neither app nor account holds a NUL.
    private static func keys(_ app: AppName, _ account: AccountName, _ caller: Caller) -> [(Kind, [UInt8])] {
        let name = Array(app.description.utf8) + [0] + account.bytes
        switch caller {
        case .stranger(let address): return [(.address, address.bytes), (.account, name)]
        case .knownDevice(let device): return [(.device, name + [0] + device)]
        }
    }
}

extension LoginLimits {
    /// A number that is another one once anything was counted.
    package var changes: UInt64 { Kind.allCases.reduce(0) { $0 &+ table($1).changes } }

    /// One value for each table, to be stored by its kind.
    package func snapshots(at now: Int64) -> [Kind: [UInt8]] {
        var snapshots: [Kind: [UInt8]] = [:]
        for kind in Kind.allCases { snapshots[kind] = table(kind).snapshot(at: now) }
        return snapshots
    }

    /// The limits as they were when the snapshots were made. Fails for anything else than all of the kinds' own.
    package init(_ rules: Rules, restoring snapshots: [Kind: [UInt8]], at now: Int64) throws(LimitTable.NotRestored) {
        try self.init(rules) { (kind: Kind) throws(LimitTable.NotRestored) in
            guard let snapshot = snapshots[kind] else { throw .malformed }
            return try LimitTable.hashKey(of: snapshot)
        }
        for kind in Kind.allCases { try table(kind).restore(snapshots[kind] ?? [], at: now) }
    }
}
