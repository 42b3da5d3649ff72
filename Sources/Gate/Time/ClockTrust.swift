import CountersignWire

/// Judges whether the wall clock can be trusted, by comparing it with others: the machine's clock since its
/// start, which is never set, and, where several nodes share a database, the database's clock. Holds no clock
/// itself: each reading is an argument. Source: docs/decisions/0100-trusted-time.md.
///
/// All times are milliseconds; those of the wall clock count from the Unix epoch, and those of `uptime` from
/// the machine's start, including the time for which it was suspended (`CLOCK_BOOTTIME`).
package struct ClockTrust: Sendable, Equatable {
    /// How far two clocks may differ.
    package static let tolerance: Int64 = 5_000
    /// How long the clocks must agree before a clock that was wrong is trusted again, and before something is
    /// deleted by it after a start.
    package static let patience: Int64 = 600_000
    /// How far a clock that was taken at its word after a restart of the machine may be set in its first ten
    /// minutes, all steps together: it is synchronized then.
    private static let mostFirstSteps: Int64 = 130_000
    /// The mark follows the wall clock by at most one millisecond for so many that pass.
    private static let leastRatio: Int64 = 1_000
    /// How long the mark stays before it follows the wall clock.
    private static let markAge: Int64 = 10_000

    /// The clocks, read at one moment.
    package struct Reading: Sendable, Equatable {
        package var wall: Int64
        package var uptime: Int64
        /// The database's clock; nil if there is none, or if it was not heard yet.
        package var store: Int64?

        package init(wall: Int64, uptime: Int64, store: Int64? = nil) {
            (self.wall, self.uptime, self.store) = (wall, uptime, store)
        }
    }

    /// A time that was right at a moment of the machine's clock.
    package struct Mark: Sendable, Equatable {
        package var wall: Int64
        package var uptime: Int64

        package init(wall: Int64, uptime: Int64) { (self.wall, self.uptime) = (wall, uptime) }

        func time(at uptime: Int64) -> Int64 { wall + (uptime - self.uptime) }
    }

    /// Why the clock is not trusted.
    package enum Doubt: Sendable, Equatable {
        /// The wall clock differs by so many milliseconds from the time that should have come by now.
        case jumped(Int64)
        /// The wall clock is so many milliseconds ahead of the database's.
        case differsFromStore(Int64)
        /// At the start, the clock was behind something that the deployment has recorded.
        case behindRecord(Int64)
        /// At the start, the clock was past the end of the server's certificate.
        case pastCertificate(Int64)
        /// The database's clock was not heard yet.
        case storeNotHeard
        /// The clock was not trusted when the machine was restarted, and nothing measures the time since.
        case doubtedBefore
    }

    /// What is known when a server starts.
    package struct Beginning: Sendable, Equatable {
        /// What the last server of this data folder left; nil if there was none.
        package var last: ClockTrust?
        /// Whether the machine has been up since then, so that its clock measures the time in between.
        package var isSameBoot = false
        /// The time of the newest record of the audit log; 0 for none.
        package var newestRecord: Int64 = 0
        /// The end of the server's certificate; nil without one.
        package var certificateEnd: Int64?
        /// Whether the clock must agree with a database's.
        package var needsStore = false

        package init() {}
    }

    /// Nil until the clock was plausible once.
    package private(set) var mark: Mark?
    /// Since when the clocks have agreed without a break; nil while they differ.
    package private(set) var agreesSince: Int64?
    package private(set) var isTrusted: Bool
    /// The latest time at which the clock was trusted.
    package private(set) var lastTrusted: Int64
    /// Nil while the clocks agree.
    package private(set) var doubt: Doubt?
    /// The doubt for which the clock is not trusted, or was not trusted before.
    package private(set) var lastDoubt: Doubt?
    /// Until when the mark may be set anew by a step; nil if it may not.
    private var settlesUntil: Int64?
    private var stepsLeft = ClockTrust.mostFirstSteps
    private var needsConfirmation = false
    private var newestRecord: Int64 = 0
    private var certificateEnd: Int64?
    private var needsStore = false

    /// As it was kept.
    package init(mark: Mark?, agreesSince: Int64?, isTrusted: Bool, lastTrusted: Int64) {
        (self.mark, self.agreesSince, self.isTrusted, self.lastTrusted) = (
            mark, agreesSince, isTrusted, lastTrusted
        )
    }

    /// When a server starts. After a long stop, the clock is trusted at once if nothing speaks against it.
    package init(_ beginning: Beginning, reading: Reading) {
        let last = beginning.last
        if let last, beginning.isSameBoot, last.mark != nil {
            self = last
            if let since = agreesSince, since > reading.uptime { agreesSince = nil }
            // What was taken at its word a moment ago may still be synchronized.
            settlesUntil = isTrusted ? agreesSince.map { $0 + ClockTrust.patience } : nil
        } else {
            let floor = max(last?.lastTrusted ?? 0, beginning.newestRecord)
            self.init(mark: nil, agreesSince: nil, isTrusted: last?.isTrusted ?? true, lastTrusted: floor)
            settlesUntil = reading.uptime + ClockTrust.patience
            // The database's clock tells, if there is one; else a doubt outlasts the machine's restart.
            needsConfirmation = !beginning.needsStore && last.map { !$0.isTrusted && $0.isInDoubt } ?? false
        }
        newestRecord = max(lastTrusted, beginning.newestRecord)
        (certificateEnd, needsStore) = (beginning.certificateEnd, beginning.needsStore)
        observe(reading)
    }

    /// Whether something may be deleted by this clock.
    package func maySweep(at uptime: Int64) -> Bool {
        guard isTrusted, let agreesSince else { return false }
        return uptime - agreesSince >= ClockTrust.patience
    }

    /// The time that should have come by now, however the wall clock was set; nil if that is not known.
    package func expected(at uptime: Int64) -> Int64? { mark?.time(at: uptime) }

    /// Whether the clocks differed when they were compared last.
    private var isInDoubt: Bool { agreesSince == nil }

    /// Compares the clocks. Call it every few seconds, and before the clock decides anything.
    package mutating func observe(_ reading: Reading) {
        settle(reading)
        doubt = mark.map { doubt(of: reading, beside: $0) } ?? doubtAtStart(of: reading)
        guard doubt == nil else {
            (isTrusted, agreesSince, lastDoubt) = (false, nil, doubt)
            return
        }
        follow(reading.wall, at: reading.uptime)
        let since = agreesSince ?? reading.uptime
        agreesSince = since
        if reading.uptime - since >= ClockTrust.patience { isTrusted = true }
        if isTrusted { lastTrusted = max(lastTrusted, min(reading.wall, reading.store ?? reading.wall)) }
    }

    /// A person has compared the clock with another one. It must still agree with the database's: false, and
    /// nothing changes, if it does not.
    package mutating func confirm(_ reading: Reading) -> Bool {
        guard storeDoubt(of: reading) == nil else { return false }
        mark = Mark(wall: reading.wall, uptime: reading.uptime)
        (isTrusted, agreesSince, doubt) = (true, reading.uptime, nil)
        (needsConfirmation, settlesUntil) = (false, nil)
        lastTrusted = min(reading.wall, reading.store ?? reading.wall)
        return true
    }

    /// A machine that was just restarted sets its clock by small steps. Sweeps wait ten minutes after each.
    private mutating func settle(_ reading: Reading) {
        guard let mark, let end = settlesUntil else { return }
        guard reading.uptime < end else {
            settlesUntil = nil
            return
        }
        let step = reading.wall - mark.time(at: reading.uptime)
        guard abs(step) > ClockTrust.tolerance, abs(step) <= stepsLeft else { return }
        stepsLeft -= abs(step)
        agreesSince = nil
        self.mark = Mark(wall: reading.wall, uptime: reading.uptime)
    }

    private func storeDoubt(of reading: Reading) -> Doubt? {
        guard let store = reading.store else { return needsStore ? .storeNotHeard : nil }
        let ahead = reading.wall - store
        return abs(ahead) > ClockTrust.tolerance ? .differsFromStore(ahead) : nil
    }

    private func doubt(of reading: Reading, beside mark: Mark) -> Doubt? {
        let ahead = reading.wall - mark.time(at: reading.uptime)
        if let doubt = storeDoubt(of: reading) { return doubt }
        return abs(ahead) > ClockTrust.tolerance ? .jumped(ahead) : nil
    }

    private func doubtAtStart(of reading: Reading) -> Doubt? {
        if let doubt = storeDoubt(of: reading) { return doubt }
        if needsConfirmation { return .doubtedBefore }
        // Records have whole seconds, and another node's clock may be ahead by the tolerance.
        let behind = newestRecord - reading.wall
        if behind > ClockTrust.tolerance { return .behindRecord(behind) }
        if let certificateEnd, reading.wall >= certificateEnd {
            return .pastCertificate(reading.wall - certificateEnd)
        }
        return nil
    }

    private mutating func follow(_ wall: Int64, at uptime: Int64) {
        guard let mark else {
            self.mark = Mark(wall: wall, uptime: uptime)
            return
        }
        let passed = uptime - mark.uptime
        guard passed >= ClockTrust.markAge else { return }
        let expected = mark.time(at: uptime)
        let most = passed / ClockTrust.leastRatio
        self.mark = Mark(wall: expected + min(max(wall - expected, -most), most), uptime: uptime)
    }
}
