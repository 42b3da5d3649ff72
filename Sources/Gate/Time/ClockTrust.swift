import CountersignWire

/// Judges whether the wall clock can be trusted, by comparing it with other clocks: the uptime clock
/// (`CLOCK_BOOTTIME`), which is never set, and, where several nodes share a database, the database's clock.
/// Holds no clock itself: each reading is an argument. Source: docs/decisions/0100-trusted-time.md.
///
/// All times are in milliseconds. Wall-clock times count from the Unix epoch. `uptime` counts from the
/// machine's start and includes the time for which the machine was suspended.
package struct ClockTrust: Sendable, Equatable {
    /// How far two clocks may differ.
    package static let tolerance: Int64 = 5_000
    /// How long the clocks must agree before a wrong clock is trusted again, and before the clock may cause
    /// deletions after a start.
    package static let patience: Int64 = 600_000
    /// How far, in all steps together, the clock may be set in the first ten minutes after it was trusted
    /// without a comparison, as after a restart of the machine. The machine synchronizes it then.
    private static let mostFirstSteps: Int64 = 130_000
    /// The mark moves toward the wall clock by at most one millisecond in this many milliseconds.
    private static let leastRatio: Int64 = 1_000
    /// How long the mark stays unchanged before it moves toward the wall clock.
    private static let markAge: Int64 = 10_000

    /// The clocks, read at one moment.
    package struct Reading: Sendable, Equatable {
        package var wall: Int64
        package var uptime: Int64
        /// The database's clock; nil without a database server, or before the first reading.
        package var store: Int64?

        package init(wall: Int64, uptime: Int64, store: Int64? = nil) {
            (self.wall, self.uptime, self.store) = (wall, uptime, store)
        }
    }

    /// A wall-clock time that was right at a given uptime.
    package struct Mark: Sendable, Equatable {
        package var wall: Int64
        package var uptime: Int64

        package init(wall: Int64, uptime: Int64) { (self.wall, self.uptime) = (wall, uptime) }

        func time(at uptime: Int64) -> Int64 { wall + (uptime - self.uptime) }
    }

    /// The steps by which a machine that was just started may set its clock.
    package struct FirstSteps: Sendable, Equatable {
        /// The uptime until which a step may reset the mark.
        package var until: Int64
        /// How far the clock may still be set.
        package var left: Int64

        package init(until: Int64, left: Int64) { (self.until, self.left) = (until, left) }
    }

    /// Why the clock is not trusted.
    package enum Doubt: Sendable, Equatable {
        /// The wall clock differs by this many milliseconds from the expected time.
        case jumped(Int64)
        /// The wall clock is this many milliseconds ahead of the database's.
        case differsFromStore(Int64)
        /// At the start, the wall clock was this many milliseconds behind a time that the deployment has
        /// recorded.
        case behindRecord(Int64)
        /// At the start, the wall clock was this many milliseconds past the end of the server's certificate.
        case pastCertificate(Int64)
        /// The database's clock was not read yet.
        case storeNotHeard
        /// The clock was not trusted when the machine restarted, and no clock has measured the time since.
        case doubtedBefore
        /// A command cannot read what the data folder's servers know of the clock.
        case recordUnreadable
    }

    /// The facts that are available when a server starts.
    package struct Beginning: Sendable, Equatable {
        /// The state that the last server of this data folder saved; nil if there was none.
        package var last: ClockTrust?
        /// Whether the machine has not restarted since then, so that its uptime measures the time in between.
        package var isSameBoot = false
        /// The time of the newest record in the audit log; 0 if the log is empty.
        package var newestRecord: Int64 = 0
        /// The end of the server's certificate; nil without one.
        package var certificateEnd: Int64?
        /// Whether the clock must agree with a database's clock.
        package var needsStore = false
        /// Whether there is a saved state that cannot be read.
        package var isLastUnreadable = false
        /// Whether the clock is watched from now on. A command judges it once.
        package var isWatched = true

        package init() {}
    }

    /// Nil until the clock was plausible once.
    package private(set) var mark: Mark?
    /// The uptime since which the clocks have agreed without a break; nil while they differ.
    package private(set) var agreesSince: Int64?
    package private(set) var isTrusted: Bool
    /// The latest wall-clock time at which the clock was trusted.
    package private(set) var lastTrusted: Int64
    /// Nil while the clocks agree.
    package private(set) var doubt: Doubt?
    /// The last reason for which the clock was not trusted. It stays after the clocks agree again.
    package private(set) var lastDoubt: Doubt?
    /// Nil if no step may reset the mark.
    package private(set) var firstSteps: FirstSteps?
    private var needsConfirmation = false
    private var needsRecord = false
    private var newestRecord: Int64 = 0
    private var certificateEnd: Int64?
    private var needsStore = false

    /// Restores a saved state.
    package init(
        mark: Mark?, agreesSince: Int64?, isTrusted: Bool, lastTrusted: Int64, firstSteps: FirstSteps? = nil
    ) {
        (self.mark, self.agreesSince, self.isTrusted, self.lastTrusted) = (
            mark, agreesSince, isTrusted, lastTrusted
        )
        self.firstSteps = firstSteps
    }

    /// Judges the clock when a server starts. After a long stop, the clock is trusted at once if nothing
    /// contradicts it.
    package init(_ beginning: Beginning, reading: Reading) {
        let last = beginning.last
        if let last, beginning.isSameBoot, last.mark != nil {
            self = last
            if let since = agreesSince, since > reading.uptime { agreesSince = nil }
            // A clock that was trusted without a comparison a moment ago may still be synchronized. A start
            // begins no other ten minutes.
            if !isTrusted || (firstSteps?.until ?? 0) > reading.uptime + ClockTrust.patience {
                firstSteps = nil
            }
        } else {
            let floor = max(last?.lastTrusted ?? 0, beginning.newestRecord)
            self.init(mark: nil, agreesSince: nil, isTrusted: last?.isTrusted ?? true, lastTrusted: floor)
            firstSteps =
                beginning.isLastUnreadable
                ? nil
                : FirstSteps(until: reading.uptime + ClockTrust.patience, left: ClockTrust.mostFirstSteps)
            // With a database, its clock decides. Without one, distrust survives the machine's restart.
            needsConfirmation = !beginning.needsStore && last.map { !$0.isTrusted && $0.isInDoubt } ?? false
            needsRecord = beginning.isLastUnreadable && !beginning.isWatched && !beginning.needsStore
        }
        newestRecord = max(lastTrusted, beginning.newestRecord)
        (certificateEnd, needsStore) = (beginning.certificateEnd, beginning.needsStore)
        observe(reading)
    }

    /// Whether this clock may cause deletions.
    package func maySweep(at uptime: Int64) -> Bool {
        guard isTrusted, let agreesSince else { return false }
        return uptime - agreesSince >= ClockTrust.patience
    }

    /// The expected wall-clock time, however the clock was set; nil if it is not known.
    package func expected(at uptime: Int64) -> Int64? { mark?.time(at: uptime) }

    /// The best estimate of the time at a reading that the trust was just given; nil for the wall clock.
    func estimate(at reading: Reading) -> Int64? {
        if let time = expected(at: reading.uptime) { return time }
        switch doubt {
        case nil, .recordUnreadable: return nil
        case .jumped, .differsFromStore, .behindRecord, .pastCertificate, .storeNotHeard, .doubtedBefore:
            return reading.store ?? lastTrusted
        }
    }

    /// Whether the clocks differed at the last comparison.
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

    /// Trusts the clock because a person has compared it with another one. Returns false and changes nothing
    /// if the clock does not agree with the database's.
    package mutating func confirm(_ reading: Reading) -> Bool {
        guard storeDoubt(of: reading) == nil else { return false }
        mark = Mark(wall: reading.wall, uptime: reading.uptime)
        (isTrusted, agreesSince, doubt) = (true, reading.uptime, nil)
        (needsConfirmation, needsRecord, firstSteps) = (false, false, nil)
        lastTrusted = min(reading.wall, reading.store ?? reading.wall)
        return true
    }

    /// Accepts the small steps by which a machine that has just restarted sets its clock. Deletions wait ten
    /// minutes after each step.
    private mutating func settle(_ reading: Reading) {
        guard let mark, let steps = firstSteps else { return }
        guard reading.uptime < steps.until else {
            firstSteps = nil
            return
        }
        let step = reading.wall - mark.time(at: reading.uptime)
        guard abs(step) > ClockTrust.tolerance, abs(step) <= steps.left else { return }
        firstSteps?.left -= abs(step)
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
        if needsRecord { return .recordUnreadable }
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

extension ClockTrust.Doubt {
    /// One sentence without its full stop, for an operator.
    package var text: String {
        switch self {
        case .jumped(let ahead):
            "the clock is \(ClockTrust.Doubt.seconds(ahead)) the time expected by the machine's uptime"
        case .differsFromStore(let ahead):
            "the clock is \(ClockTrust.Doubt.seconds(ahead)) the database's"
        case .behindRecord(let behind):
            "the clock is \(ClockTrust.Doubt.seconds(-behind)) the newest record of this deployment"
        case .pastCertificate(let ahead):
            "the clock is \(ClockTrust.Doubt.seconds(ahead)) the end of the server's certificate"
        case .storeNotHeard: "the database's clock cannot be read"
        case .recordUnreadable:
            "the file `clock` of the data folder cannot be read, and nothing else tells whether the clock is "
                + "right"
        case .doubtedBefore: "the clock was not trusted when the machine was restarted"
        }
    }

    private static func seconds(_ ahead: Int64) -> String {
        "\(abs(ahead) / 1_000) s \(ahead < 0 ? "behind" : "ahead of")"
    }
}
