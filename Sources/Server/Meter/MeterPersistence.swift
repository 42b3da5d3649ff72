import CountersignAuthority
import CountersignGate
import CountersignWire

/// Writes the meter's counts to the store: each time the increase since the last write. If the store fails,
/// the increase stays counted and goes with the next write.
struct MeterPersistence {
    /// Figures older than this many days are deleted, so that the table does not grow without bound.
    static let keptDays: Int64 = 400

    private let meter: RequestMeter
    private let store: any MeterStore
    private var written: [MeterEntry.Subject: UInt64] = [:]
    private var tidied: Int64?

    init(_ meter: RequestMeter, store: any MeterStore) {
        self.meter = meter
        self.store = store
    }

    /// `now` in whole Unix seconds determines the day that the new figures count to, and the time at which
    /// the subjects were last seen. Nothing is deleted without `sweepTime`.
    mutating func write(at now: Int64, sweepingAt sweepTime: TrustedTime?) throws(OperationalError) {
        let day = now / 86_400
        let totals = meter.totals()
        var entries: [MeterEntry] = []
        for (subject, total) in totals {
            let count = total - (written[subject] ?? 0)
            if count > 0 {
                entries.append(MeterEntry(subject: subject, day: day, count: Int64(count), lastSeen: now))
            }
        }
        if !entries.isEmpty {
            try store.add(entries)
            written = totals
        }
        guard let sweepTime, tidied != day else { return }
        try store.forgetMeter(before: sweepTime.earlier(by: MeterPersistence.keptDays * 86_400))
        tidied = day
    }
}

/// Writes the meter to the store every two seconds, on a thread of its own, so that no loop waits for a disk.
/// `kill -9` loses at most what was counted since the last write.
///
/// Safe to share: only its ticker's thread touches the meter's persistence; only the thread that starts and
/// stops it touches `ticker`.
final class MeterWriter: @unchecked Sendable {
    private static let seconds = 2

    private var ledger: MeterPersistence
    private let log: EventLog?
    private let clock: any TimeSource
    private var ticker: Ticker?

    init(_ ledger: MeterPersistence, log: EventLog?, clock: any TimeSource) {
        self.ledger = ledger
        self.log = log
        self.clock = clock
    }

    func start() throws(OperationalError) {
        let ticker = Ticker(every: MeterWriter.seconds) { [self] in write() }
        try ticker.start()
        self.ticker = ticker
    }

    /// Writes what is left and ends the thread. Call after the loops have ended, so that nothing is counted
    /// afterwards.
    func stop() {
        ticker?.stop()
        ticker = nil
    }

    private func write() {
        do { try ledger.write(at: clock.estimate, sweepingAt: clock.sweepTime) } catch {
            log?.note(subject: "meter", message: error.message)
        }
    }
}
