import CountersignGate
import CountersignSchemes
import CountersignWire

/// The changes that a promoted standby lacks, from the data folders of the nodes that had made them. They
/// lead from the store's state, without a gap, to the latest one that any of the folders has followed.
package struct LostChanges: Sendable {
    /// A row to remove, and the values of its key.
    package struct Removal: Sendable {
        package let table: AuthenticatedTable
        package let values: [String: RowMessage.Value]
    }

    /// Sessions, tickets, codes, verifications and known devices that were changed or removed.
    package private(set) var removals: [Removal] = []
    /// The last state of each changed account, by its number.
    package private(set) var accounts: [Int64: Account.State] = [:]
    package private(set) var erased: Set<Int64> = []
    package private(set) var retirements: [KeyID: AppRelease.Retirement] = [:]
    /// Accounts whose user id was changed or cleared.
    package private(set) var accountsWithOtherUserIDs: Set<Int64> = []
    /// The ids of the webhooks that there were last; nil if they were not changed.
    package private(set) var remainingWebhooks: Set<String>?
    package private(set) var erasedNames: [(app: String, tombstone: [UInt8])] = []
    /// How many transactions.
    package let count: Int
    /// The seconds between the first of them and the last.
    package let seconds: Int64
    /// ``StoreHead/position`` of the last of them.
    package let position: UInt64

    /// Throws if the changes do not lead from `store` to all `heads`, or not in so many seconds. `name` is
    /// the store's.
    package init(
        from store: StoreState, called name: String, to heads: [StoreHead], in changes: [StoreChange],
        within seconds: Int64
    ) throws(OperationalError) {
        func refused(_ reason: String) -> OperationalError {
            OperationalError(
                .failed,
                message: "\(name): \(reason); without --lost, `countersign restore --in-place` ends all "
                    + "sessions, whatever was lost")
        }
        guard let summary = store.summary else { throw refused("it has no summary of its rows") }
        let found = LostChanges.following(StoreChange.state(summary), in: changes)
        guard let first = found.first, let last = found.last,
            heads.allSatisfy({ !$0.isBeyond(last.position) })
        else {
            throw refused(
                "the changes that these data folders keep do not lead from its state to what they have "
                    + "followed; expected all nodes' folders (--changes-from), and a standby that was not "
                    + "changed since it was promoted")
        }
        let times = found.map(\.time)
        self.seconds = (times.max() ?? first.time) - (times.min() ?? first.time)
        guard self.seconds <= seconds else {
            throw refused("it lacks the changes of \(self.seconds) seconds, which is more than --lost")
        }
        (count, position) = (found.count, last.position)
        for change in found { try add(change) }
    }

    /// What was committed after a state, in this order. After a failure, one state may have several
    /// successors: each that may have been committed counts.
    private static func following(_ state: [UInt8], in changes: [StoreChange]) -> [StoreChange] {
        let next = Dictionary(grouping: changes) { $0.before }
        var (found, seen, states): ([StoreChange], Set<[UInt8]>, [[UInt8]]) = ([], [], [state])
        while let state = states.popLast() {
            for change in next[state] ?? [] where seen.insert(change.after).inserted {
                found.append(change)
                states.append(change.after)
            }
        }
        return found.sorted { Int64(bitPattern: $0.position &- $1.position) < 0 }
    }

    private mutating func add(_ change: StoreChange) throws(OperationalError) {
        var steps: [KeyID: [AppRelease.RolloutStep]] = [:]
        var changed: Set<KeyID> = []
        for row in change.rows {
            guard let (name, values) = RowMessage(encoded: row).decoded(),
                let table = AuthenticatedTable.all.first(where: { $0.name == name })
            else { throw OperationalError(.failed, message: "a change of a row that cannot be read") }
            func integer(_ column: String) -> Int64? {
                if case .integer(let number)? = values[column] { number } else { nil }
            }
            func bytes(_ column: String) -> [UInt8]? {
                if case .bytes(let bytes)? = values[column] { bytes } else { nil }
            }
            func text(_ column: String) -> String? {
                bytes(column).map { String(decoding: $0, as: UTF8.self) }
            }
            switch table {
            case .account:
                guard let number = integer("number") else { continue }
                accounts[number] = text("state").flatMap { Account.State(rawValue: $0) }
                if integer("erased") != nil { erased.insert(number) }
                if integer("user_id") != nil { accountsWithOtherUserIDs.insert(number) }
            case .meta:
                guard let settings = bytes("value").flatMap({ WebhookSettings(document: $0) }) else {
                    continue
                }
                remainingWebhooks = Set(settings.endpoints.map(\.id))
            case .erasedName:
                if let app = text("app"), let tombstone = bytes("tombstone") {
                    erasedNames.append((app, tombstone))
                }
            case .release:
                guard let id = text("key_id").flatMap({ KeyID($0) }) else { continue }
                changed.insert(id)
                retirements[id] = integer("retired_at").map { at in
                    var retirement = AppRelease.Retirement(at: at, updateURL: text("update_url") ?? "")
                    retirement.warnAt = integer("warn_at")
                    retirement.readOnlyAt = integer("read_only_at")
                    return retirement
                }
            case .releaseRollout:
                guard let id = text("key_id").flatMap({ KeyID($0) }), let since = integer("since"),
                    let percent = integer("percent")
                else { continue }
                steps[id, default: []].append(AppRelease.RolloutStep(since: since, percent: Int(percent)))
            default: removals.append(Removal(table: table, values: values))
            }
        }
        for id in changed {
            retirements[id]?.rollout = (steps[id] ?? []).sorted { $0.since < $1.since }
        }
    }
}
