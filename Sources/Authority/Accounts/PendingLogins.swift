import CountersignSeal
import CountersignWire

/// The logins that were begun and not finished: each for a minute, and so many at most.
///
/// **When it is full** the newcomer takes the place of the oldest login of whoever has the most of them. A flood from one
/// address pushes out its own; to push out another's it must come from as many addresses as there are places, and the limits
/// count every start of each.
///
/// Safe to share: all of its state is under the lock.
package final class PendingLogins: @unchecked Sendable {
    /// Seconds from start to finish.
    package static let lifetime: Int64 = 60
    /// Bytes of a login's id.
    package static let idCount = 16

    private struct Entry {
        var login: PendingLogin
        var holder: PendingLogin.Holder
        var until: Int64
    }

    private let capacity: Int
    private let monitor = Monitor()
    private var entries: [[UInt8]: Entry] = [:]
    /// Ids in the order in which they came, which is the order in which they run out; some are of logins that are over.
    private var order: [[UInt8]] = []
    /// Where in ``order`` those begin that are not known to be over.
    private var first = 0
    private var counts: [PendingLogin.Holder: Int] = [:]

    /// Room for so many; each takes less than 2 KiB.
    package init(capacity: Int) { self.capacity = max(capacity, 1) }

    package var count: Int { monitor.hold { entries.count } }
    /// Ids that are held, of logins that are over too.
    var remembered: Int { monitor.hold { order.count } }

    /// The id under which it will be taken: 16 random bytes.
    func add(_ login: PendingLogin, of holder: PendingLogin.Holder, at now: Int64) -> [UInt8] {
        let id = SystemRandom().bytes(PendingLogins.idCount)
        monitor.hold {
            dropOld(at: now)
            if entries.count >= capacity { makeRoom() }
            entries[id] = Entry(login: login, holder: holder, until: now + PendingLogins.lifetime)
            order.append(id)
            counts[holder, default: 0] += 1
        }
        return id
    }

    /// The login of that id, which then is nobody else's; nil where there is none, or its time is over.
    func take(_ id: [UInt8], at now: Int64) -> PendingLogin? {
        monitor.hold {
            guard let entry = remove(id), now < entry.until else { return nil }
            return entry.login
        }
    }

    /// Forgets those whose time is over, with their keys: for a timer, so that they go although nobody comes.
    package func expire(at now: Int64) { monitor.hold { dropOld(at: now) } }

    private func dropOld(at now: Int64) {
        while first < order.count {
            if let entry = entries[order[first]] {
                guard entry.until <= now else { break }
                _ = remove(order[first])
            }
            first += 1
        }
        // In large steps, so that the array is not moved for each.
        if first > capacity {
            order.removeFirst(first)
            first = 0
        }
        guard order.count > 3 * capacity else { return }
        order = order[first...].filter { entries[$0] != nil }
        first = 0
    }

    /// Looks at every holder, and at the logins from the oldest on: only where the table is full.
    private func makeRoom() {
        guard let heaviest = counts.max(by: { $0.value < $1.value })?.key,
            let oldest = order[first...].first(where: { entries[$0]?.holder == heaviest })
        else { return }
        _ = remove(oldest)
    }

    private func remove(_ id: [UInt8]) -> Entry? {
        guard let entry = entries.removeValue(forKey: id) else { return nil }
        let left = (counts[entry.holder] ?? 1) - 1
        counts[entry.holder] = left > 0 ? left : nil
        return entry
    }
}
