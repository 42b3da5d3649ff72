import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// What the store does in a second on its disk: refreshes through the writer, and reading all sessions at a
/// start.
package struct StoreBench: Sendable {
    /// Refreshes while so many callers wait, each for its own.
    package struct WriteFigures: Sendable {
        package var callers: Int
        package var perSecond: Double
        /// Milliseconds from the call until the change is durable.
        package var median: Double
        package var ninetyNinth: Double
    }

    /// Seconds of CPU time of one core, so that other work on the machine does not count.
    package struct ReadFigures: Sendable {
        package var sessions: Int
        /// Adding them with an account each, ten thousand to a transaction.
        package var adding: Double
        /// Opening the file and checking its integrity.
        package var opening: Double
        /// Reading them as values.
        package var reading: Double
    }

    package static let callers = [1, 8, 64, 512]
    private static let page = 10_000

    private let path: String
    private let app: AppName
    private let clock = ContinuousClock()
    private let rows: RowAuthenticator

    /// Makes a database at `path`, in a folder that the caller removes.
    package init(path: String) throws(OperationalError) {
        self.path = path
        app = try AppName(argument: "bench")
        guard let rows = RowAuthenticator(key: Secret(random: 32)) else {
            throw OperationalError(.failed, message: "libsodium did not start")
        }
        self.rows = rows
        let store = StorePlace.sqlite(path: path).open(authenticatingBy: rows)
        try store.prepare()
        _ = try store.tagAllRows()
        _ = try store.insert(App(name: app, created: 0), recording: .unchained)
    }

    /// `progress` is told how many sessions there are, now and then.
    package func reading(_ sessions: Int, progress: (Int) -> Void) throws(OperationalError) -> ReadFigures {
        var figure = ReadFigures(sessions: sessions, adding: 0, opening: 0, reading: 0)
        figure.adding = try seconds { () throws(OperationalError) in try add(sessions, progress: progress) }
        let store = StorePlace.sqlite(path: path).open(authenticatingBy: rows)
        figure.opening = try seconds { () throws(OperationalError) in _ = try store.revision() }
        var count = 0
        figure.reading = try seconds { () throws(OperationalError) in
            var change: Int64 = 0
            while case let page = try store.sessions(changedAfter: change, limit: StoreBench.page),
                let last = page.last
            {
                count += page.count
                change = last.change
            }
        }
        guard count == sessions else {
            throw OperationalError(.failed, message: "bench: \(count) sessions read, \(sessions) were added")
        }
        return figure
    }

    /// Needs as many sessions as callers, which ``reading(_:progress:)`` adds.
    package func writes(callers: Int, for duration: Duration) async throws(OperationalError) -> WriteFigures {
        let store = StorePlace.sqlite(path: path).open(authenticatingBy: rows)
        let sessions = try store.sessions(changedAfter: 0, limit: callers)
        guard sessions.count == callers else {
            throw OperationalError(.failed, message: "bench: fewer sessions than callers")
        }
        let writer = try GroupWriter(StorePlace.sqlite(path: path).open(authenticatingBy: rows))
        _ = try? await writer.write { (store) throws(OperationalError) in try store.sessionChange() }
        let start = clock.now
        let outcome = await withTaskGroup(of: [Duration]?.self) { group in
            for session in sessions {
                group.addTask { await refreshing(session, by: writer, until: start + duration) }
            }
            var all: [Duration]? = []
            for await times in group { if let times { all?.append(contentsOf: times) } else { all = nil } }
            return all
        }
        let elapsed = (clock.now - start) / .seconds(1)
        writer.stop()
        guard let times = outcome?.sorted(), !times.isEmpty else {
            throw OperationalError(.failed, message: "bench: a write was refused")
        }
        return WriteFigures(
            callers: callers, perSecond: Double(times.count) / elapsed,
            median: times[times.count / 2] / .milliseconds(1),
            ninetyNinth: times[times.count * 99 / 100] / .milliseconds(1))
    }

    /// Looks like a value under the first master key: the store checks the first byte.
    private static func sealed(_ count: Int) -> [UInt8] {
        [1] + SystemRandom().bytes(count - 1)
    }

    /// How long each took; nil where one was refused.
    private func refreshing(
        _ session: StoredSession, by writer: GroupWriter, until end: ContinuousClock.Instant
    ) async -> [Duration]? {
        guard case .device(var device) = session.credentials else { return nil }
        var times: [Duration] = []
        while clock.now < end {
            let old = StoredSession.Credentials.device(device)
            device.epoch += 1
            device.sealedPreviousRoot = device.sealedRoot
            device.sealedRoot = Self.sealed(device.sealedRoot.count)
            device.attempts = [SystemRandom().bytes(16)]
            let next = StoredSession.Credentials.device(device)
            let before = clock.now
            let swapped = try? await writer.write { (store) throws(OperationalError) in
                try store.swap(session.id, from: old, to: next, at: 1)
            }
            guard case .yes = swapped else { return nil }
            times.append(clock.now - before)
        }
        return times
    }

    private func add(_ sessions: Int, progress: (Int) -> Void) throws(OperationalError) {
        let store = StorePlace.sqlite(path: path).open(authenticatingBy: rows)
        var added = 0
        while added < sessions {
            let numbers = added..<min(added + StoreBench.page, sessions)
            var changes: [(any Store) throws(OperationalError) -> Void] = []
            for number in numbers { changes.append(opening(number)) }
            for case let fault? in try store.applyTogether(changes) { throw fault }
            added = numbers.upperBound
            progress(added)
        }
    }

    /// An account with one session.
    private func opening(_ number: Int) -> (any Store) throws(OperationalError) -> Void {
        func open(_ store: any Store) throws(OperationalError) {
            guard let name = try? AccountName(normalizing: "account-\(number)"),
                let platform = Platform("ios")
            else {
                return
            }
            var draft = AccountDraft(app: app, name: name, created: 0, tombstones: nil)
            draft.registration = StoredRegistration(
                credential: SystemRandom().bytes(StoredRegistration.credentialCount),
                sealedRecord: Self.sealed(240))
            guard case .yes(let account) = try store.insert(draft, recording: .unchained),
                let id = SessionID(SystemRandom().bytes(SessionID.count).span)
            else { return }
            var device = DeviceCredentials(
                signingKey: SystemRandom().bytes(65), agreementKey: SystemRandom().bytes(65), epochBegan: 0,
                sealedRoot: Self.sealed(73))
            device.sealedPreviousRoot = Self.sealed(73)
            device.attempts = [SystemRandom().bytes(16)]
            let session = StoredSession(
                id: id, account: account.number, app: app, platform: platform, deviceClass: .phone,
                deviceName: "bench",
                created: 0, credentials: .device(device))
            _ = try store.open(session, proving: draft.registration?.credential, slots: .single, at: 0)
        }
        return open
    }

    private func seconds(_ work: () throws(OperationalError) -> Void) throws(OperationalError) -> Double {
        let start = StoreBench.threadTime
        try work()
        return StoreBench.threadTime - start
    }

    private static var threadTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

extension AuditDraft {
    /// The audit chain is not part of what this benchmark measures.
    fileprivate static let unchained = AuditDraft { head in
        let number = (head ?? []).reduce(0) { $0 << 8 | Int64($1) } + 1
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> Int64(56 - 8 * $0)) }
        return (AuditRow(number: number, record: [], tag: [0]), bytes)
    }
}
