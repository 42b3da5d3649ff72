import CountersignGate
import CountersignHandshake
import CountersignMemory
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// A login between its start and its finish.
///
/// Unchecked, because `login` is changed by the finish without a lock: a ``PendingLoginTable`` returns each
/// login to one caller only, so that one task at a time has it.
package final class PendingLogin: @unchecked Sendable {
    /// The party that started the login. When the table is full, a party's logins displace its own and not
    /// those of others.
    package enum Holder: Sendable, Hashable {
        case address(ClientAddress)
        /// A device that the account knows, by its id and the account.
        case device([UInt8])
    }

    let binding: LoginBinding
    let app: AppName
    let purpose: LoginBinding.Purpose
    /// The account's row; nil for names without one, whose logins end like a wrong password's.
    let account: Int64?
    /// The credential of the registration that the password is proved against.
    let credential: [UInt8]
    let ke1: [UInt8]
    let ke2: [UInt8]
    /// The debit of the start. `session` is the session of a change of password.
    let receipt: LoginLimits.Receipt
    let session: SessionID?
    private var login: ServerLogin?

    /// A login that another node began, for ``SharedPendingLogins``.
    init(
        _ login: consuming ServerLogin, binding: LoginBinding, app: AppName, purpose: LoginBinding.Purpose,
        account: Int64?, credential: [UInt8], ke1: [UInt8], receipt: LoginLimits.Receipt, session: SessionID?
    ) {
        ke2 = login.ke2.bytes
        self.login = consume login
        (self.binding, self.app, self.purpose, self.account) = (binding, app, purpose, account)
        (self.credential, self.ke1, self.receipt, self.session) = (credential, ke1, receipt, session)
    }

    init(
        _ login: consuming ServerLogin, start: LoginStart, account: Int64?, credential: [UInt8],
        receipt: LoginLimits.Receipt
    ) {
        ke2 = login.ke2.bytes
        self.login = consume login
        binding = start.binding
        app = start.app
        purpose = start.purpose
        ke1 = start.ke1.bytes
        session = start.session
        self.account = account
        self.credential = credential
        self.receipt = receipt
    }

    /// What another process needs to finish the login; nil once it is finished.
    var state: Secret? {
        guard let login = login.take() else { return nil }
        let state = login.state
        self.login = consume login
        return state
    }

    /// OPAQUE's session key if the client's MAC verifies; nil if it does not, and at every later call.
    func finish(_ ke3: [UInt8]) -> Secret? {
        guard let login = login.take(), let ke3 = try? KE3(ke3) else { return nil }
        return try? login.finish(ke3)
    }
}

/// Where logins wait between their start and their finish.
package protocol PendingLoginTable: Sendable {
    /// Returns the id by which ``take(_:at:)`` finds the login: 16 random bytes.
    func add(
        _ login: PendingLogin, of holder: PendingLogin.Holder, at now: Int64
    ) throws(OperationalError) -> [UInt8]
    /// Removes and returns the login of that id; nil if the id is unknown or the login has expired. Of
    /// several calls for one id, one has it.
    func take(_ id: [UInt8], at now: Int64) throws(OperationalError) -> PendingLogin?
    /// Drops expired logins with their keys. A timer calls it, so that they go even without new logins.
    func expire(at now: Int64) throws(OperationalError)
}

/// The logins that were started and not finished, each for a minute, at most `capacity` of them.
///
/// **When the table is full**, a new login displaces the oldest login of the holder with the most. A flood
/// from one address displaces its own logins; to displace others it needs as many addresses as the table
/// has places, and the limits count every start of each.
package final class PendingLogins: PendingLoginTable {
    /// Seconds from start to finish.
    package static let lifetime: Int64 = 60
    /// Bytes of a login's id.
    package static let idCount = 16

    private let table: Locked<Table>

    /// Room for `capacity` logins; each takes less than 2 KiB.
    package init(capacity: Int) { table = Locked(Table(capacity: max(capacity, 1))) }

    package var count: Int { table.with { $0.entries.count } }
    /// Ids that the table remembers, including those of logins that are over.
    var remembered: Int { table.with { $0.order.count } }

    package func add(_ login: PendingLogin, of holder: PendingLogin.Holder, at now: Int64) -> [UInt8] {
        let id = SystemRandom().bytes(PendingLogins.idCount)
        table.with { $0.add(login, as: id, of: holder, at: now) }
        return id
    }

    package func take(_ id: [UInt8], at now: Int64) -> PendingLogin? { table.with { $0.take(id, at: now) } }

    package func expire(at now: Int64) { table.with { $0.dropOld(at: now) } }
}

extension PendingLogins {
    private struct Entry {
        var login: PendingLogin
        var holder: PendingLogin.Holder
        var until: Int64
    }

    private struct Table {
        let capacity: Int
        private(set) var entries: [[UInt8]: Entry] = [:]
        /// Ids in the order of their starts, which is the order of their expiry; some belong to logins that
        /// are over.
        private(set) var order: [[UInt8]] = []
        /// The index in ``order`` of the first id that is not known to be over.
        private var first = 0
        private var counts: [PendingLogin.Holder: Int] = [:]

        init(capacity: Int) { self.capacity = capacity }

        mutating func add(
            _ login: PendingLogin, as id: [UInt8], of holder: PendingLogin.Holder, at now: Int64
        ) {
            dropOld(at: now)
            if entries.count >= capacity { makeRoom() }
            entries[id] = Entry(login: login, holder: holder, until: now + PendingLogins.lifetime)
            order.append(id)
            counts[holder, default: 0] += 1
        }

        mutating func take(_ id: [UInt8], at now: Int64) -> PendingLogin? {
            guard let entry = remove(id), now < entry.until else { return nil }
            return entry.login
        }

        mutating func dropOld(at now: Int64) {
            while first < order.count {
                if let entry = entries[order[first]] {
                    guard entry.until <= now else { break }
                    _ = remove(order[first])
                }
                first += 1
            }
            // Ids are removed in large steps, so that the array is not moved for each.
            if first > capacity {
                order.removeFirst(first)
                first = 0
            }
            guard order.count > 3 * capacity else { return }
            order = order[first...].filter { entries[$0] != nil }
            first = 0
        }

        /// Searches all holders, and the logins from the oldest on; only called when the table is full.
        private mutating func makeRoom() {
            guard let heaviest = counts.max(by: { $0.value < $1.value })?.key,
                let oldest = order[first...].first(where: { entries[$0]?.holder == heaviest })
            else { return }
            _ = remove(oldest)
        }

        private mutating func remove(_ id: [UInt8]) -> Entry? {
            guard let entry = entries.removeValue(forKey: id) else { return nil }
            let left = (counts[entry.holder] ?? 1) - 1
            counts[entry.holder] = left > 0 ? left : nil
            return entry
        }
    }
}
