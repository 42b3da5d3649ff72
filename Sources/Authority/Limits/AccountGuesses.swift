import CountersignMemory
import CountersignSeal
import CountersignWire
import Glibc

/// Counts the failed logins of each account, so that an attacked account can be identified. Memory has a
/// fixed size and holds the accounts with the most failures: a flood of names cannot displace an account with
/// more failures.
///
/// The snapshot contains keyed hashes and no names, so an erasure need not search it. `now` is in whole Unix
/// seconds.
package final class AccountGuesses: Sendable {
    /// The most accounts that are counted at a time.
    package static let most = 1_024
    /// Seconds for which a count is kept after the last failure.
    package static let kept: Int64 = 86_400
    /// The fewest seconds between two reports of one account.
    package static let reportSeconds: Int64 = 3_600
    /// The fewest failures since the last report that are reported. People mistype, so fewer are not
    /// reported.
    package static let leastReported: Int64 = 10
    /// Seconds after which the store is asked again, if another process has added an event about the account.
    private static let retrySeconds: Int64 = 600

    /// The failed logins of one account.
    package struct Count: Sendable, Equatable {
        /// Logins that began and were not completed with the right password.
        package var failed: Int64
        /// When the first and the last of them began.
        package var since: Int64
        package var last: Int64
    }

    /// A report about one account.
    package struct Report: Sendable, Equatable {
        package let app: AppName
        package let account: AccountName
        /// Failures since the last report or event.
        package let failed: Int64
    }

    private struct Entry {
        var count: Count
        /// Nil for an entry from a snapshot, until a login names the account again.
        var name: (app: AppName, account: AccountName)?
        var unreported: Int64 = 0
        var reported: Int64 = 0
        /// Failures that no event contains.
        var unannounced: Int64 = 0
        /// When an event is due at the earliest.
        var nextEvent: Int64 = 0
    }

    private struct State {
        var entries: [Int64: Entry] = [:]
        var changes: UInt64 = 0
    }

    private let key: [UInt8]
    private let hash: KeyedHash
    private let state: Locked<State>

    package init(random: some RandomSource = SystemRandom()) {
        key = random.bytes(16)
        hash = AccountGuesses.hash(under: key)
        state = Locked(State())
    }

    /// Decodes a snapshot; nil for other bytes.
    package init?(snapshot: [UInt8]) {
        guard let document = try? JSONReader.read(snapshot), let text = document.root["key"]?.string,
            let key = Base64.decode(Array(text.utf8).span, as: .url), key.count == 16
        else { return nil }
        var state = State()
        for one in document.root["accounts"]?.elements ?? [] {
            func number(_ name: String) -> Int64? {
                one[name].flatMap { document.integer($0, in: Int.min...Int.max) }.map(Int64.init)
            }
            guard let place = one["account"]?.string.flatMap({ Int64($0, radix: 16) }),
                let failed = number("failed"), let since = number("since"), let last = number("last")
            else { return nil }
            state.entries[place] = Entry(count: Count(failed: failed, since: since, last: last))
        }
        self.key = key
        hash = AccountGuesses.hash(under: key)
        self.state = Locked(state)
    }

    private static func hash(under key: [UInt8]) -> KeyedHash {
        KeyedHash(key: KeyedHash.Key { key[$0] })
    }

    private func place(of account: AccountName, in app: AppName) -> Int64 {
        let text = Array(app.description.utf8) + [0] + account.bytes
        return Int64(bitPattern: hash.hash(text.span).low)
    }

    // MARK: Counting

    /// A login of the account begins.
    package func didBegin(_ account: AccountName, of app: AppName, at now: Int64) {
        let place = place(of: account, in: app)
        state.with { state in
            state.changes += 1
            if var entry = state.entries[place], now - entry.count.last <= AccountGuesses.kept {
                entry.count.failed += 1
                entry.count.last = now
                entry.unreported += 1
                entry.unannounced += 1
                entry.name = (app, account)
                state.entries[place] = entry
                return
            }
            if state.entries.count >= AccountGuesses.most,
                let least = state.entries.min(by: { $0.value.count.failed < $1.value.count.failed })
            {
                state.entries[least.key] = nil
            }
            state.entries[place] = Entry(
                count: Count(failed: 1, since: now, last: now), name: (app, account), unreported: 1,
                unannounced: 1)
        }
    }

    /// A login ended without a failure: it was completed, or could not be judged.
    package func didNotFail(_ account: AccountName, of app: AppName) {
        let place = place(of: account, in: app)
        state.with { state in
            guard var entry = state.entries[place] else { return }
            state.changes += 1
            entry.count.failed -= 1
            entry.unreported = max(entry.unreported - 1, 0)
            entry.unannounced = max(entry.unannounced - 1, 0)
            state.entries[place] = entry.count.failed > 0 ? entry : nil
        }
    }

    /// The failed logins of an account; nil if none are known.
    package func count(of account: AccountName, in app: AppName, at now: Int64) -> Count? {
        let place = place(of: account, in: app)
        return state.with { state in
            guard let entry = state.entries[place], now - entry.count.last <= AccountGuesses.kept else {
                return nil
            }
            return entry.count
        }
    }

    /// The accounts to report: each at most once in ``reportSeconds``.
    package func takeReports(at now: Int64) -> [Report] {
        state.with { state in
            var reports: [Report] = []
            for (place, entry) in state.entries {
                guard entry.unreported >= AccountGuesses.leastReported, let name = entry.name,
                    now - entry.reported >= AccountGuesses.reportSeconds
                else { continue }
                reports.append(Report(app: name.app, account: name.account, failed: entry.unreported))
                var told = entry
                (told.unreported, told.reported) = (0, now)
                state.entries[place] = told
            }
            return reports
        }
    }

    /// The accounts about which an event is to be added to the outbox, with the failures that no event
    /// contains. ``didAnnounce(_:isAdded:at:)`` settles each.
    package func dueEvents(at now: Int64) -> [Report] {
        state.with { state in
            state.entries.values.compactMap { entry in
                guard entry.unannounced >= AccountGuesses.leastReported, now >= entry.nextEvent,
                    let name = entry.name
                else { return nil }
                return Report(app: name.app, account: name.account, failed: entry.unannounced)
            }
        }
    }

    /// The store has added the event, or does not need it; or, if `isAdded` is false, another process added
    /// one within the last hour. The count then waits for the next event.
    package func didAnnounce(_ report: Report, isAdded: Bool, at now: Int64) {
        let place = place(of: report.account, in: report.app)
        state.with { state in
            guard var entry = state.entries[place] else { return }
            if isAdded { entry.unannounced = max(entry.unannounced - report.failed, 0) }
            entry.nextEvent = now + (isAdded ? AccountGuesses.reportSeconds : AccountGuesses.retrySeconds)
            state.entries[place] = entry
        }
    }

    /// The number of accounts with at least ``leastReported`` failures, the last of them within
    /// ``reportSeconds``.
    package func attacked(at now: Int64) -> Int {
        state.with { state in
            state.entries.values.count {
                $0.count.failed >= AccountGuesses.leastReported
                    && now - $0.count.last <= AccountGuesses.reportSeconds
            }
        }
    }

    // MARK: Keeping

    /// Increases with each change.
    package var changes: UInt64 { state.with { $0.changes } }

    package var snapshot: [UInt8] {
        let entries = state.with { $0.entries }
        let accounts: [JSONValue] = entries.sorted { $0.key < $1.key }.map { place, entry in
            [
                "account": .string(String(place, radix: 16)), "failed": .integer(entry.count.failed),
                "since": .integer(entry.count.since), "last": .integer(entry.count.last),
            ]
        }
        let key = key
        let text = Base64.encode(key.span, as: .url)
        let value: JSONValue = ["key": .string(text), "accounts": .array(accounts)]
        return value.bytes
    }
}

extension AccountGuesses {
    /// Writes the file atomically.
    package func write(to path: String) throws(OperationalError) { try KeyFile.replace(path, by: snapshot) }

    /// Reads the file that a server wrote; nil if it is missing or unreadable.
    package static func read(_ path: String) -> AccountGuesses? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let bytes = try? FileReader.bytes(of: file, limit: 1 << 20, name: path)
        return bytes.flatMap { $0 }.flatMap { AccountGuesses(snapshot: $0) }
    }
}
