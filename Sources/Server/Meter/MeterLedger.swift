import CountersignAuthority
import CountersignGate
import CountersignWire

/// Carries what was counted over into the store: each time what has been added since the last. What the store does not
/// take stays counted, and goes with the next time.
struct MeterLedger {
    /// After so many days a day's figures are dropped, so that the table cannot grow for ever.
    static let keptDays: Int64 = 400

    private let meter: Meter
    private let store: any MeterStore
    private var written: [MeterEntry.Subject: UInt64] = [:]
    private var tidied: Int64?

    init(_ meter: Meter, _ store: any MeterStore) {
        self.meter = meter
        self.store = store
    }

    /// `now` in whole Unix seconds: the day that the new figures go to, and when they were last seen.
    mutating func write(at now: Int64) throws(Fault) {
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
        guard tidied != day else { return }
        try store.forgetMeter(before: day - MeterLedger.keptDays)
        tidied = day
    }
}
