import CountersignWire

/// Judges whether the wall clock can be trusted, by comparing it with clocks that nobody sets: the machine's
/// clock since its start, and, where several nodes share a database, the database's clock. Holds no clock
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
        } else {
            let floor = max(last?.lastTrusted ?? 0, beginning.newestRecord)
            self.init(mark: nil, agreesSince: nil, isTrusted: last?.isTrusted ?? true, lastTrusted: floor)
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

    /// Compares the clocks. Call it every few seconds, and before the clock decides anything.
    package mutating func observe(_ reading: Reading) {
        doubt = mark.map { doubt(of: reading, beside: $0) } ?? doubtAtStart(of: reading)
        guard doubt == nil else {
            (isTrusted, agreesSince) = (false, nil)
            return
        }
        let reference = reading.store ?? reading.wall
        follow(reference, at: reading.uptime)
        let since = agreesSince ?? reading.uptime
        agreesSince = since
        if reading.uptime - since >= ClockTrust.patience { isTrusted = true }
        if isTrusted { lastTrusted = max(lastTrusted, min(reading.wall, reference)) }
    }

    /// A person has compared the clock with another one. It must still agree with the database's.
    package mutating func confirm(_ reading: Reading) {
        if needsStore || reading.store != nil {
            guard let store = reading.store, abs(reading.wall - store) <= ClockTrust.tolerance else { return }
        }
        let reference = reading.store ?? reading.wall
        mark = Mark(wall: reference, uptime: reading.uptime)
        (isTrusted, agreesSince, doubt) = (true, reading.uptime, nil)
        lastTrusted = reference
    }

    private func doubt(of reading: Reading, beside mark: Mark) -> Doubt? {
        let expected = mark.time(at: reading.uptime)
        if let store = reading.store {
            if abs(reading.wall - store) > ClockTrust.tolerance {
                return .differsFromStore(reading.wall - store)
            }
            let ahead = store - expected
            return abs(ahead) > ClockTrust.tolerance ? .jumped(ahead) : nil
        }
        if needsStore { return .storeNotHeard }
        let ahead = reading.wall - expected
        return abs(ahead) > ClockTrust.tolerance ? .jumped(ahead) : nil
    }

    private func doubtAtStart(of reading: Reading) -> Doubt? {
        if needsStore {
            guard let store = reading.store else { return .storeNotHeard }
            if abs(reading.wall - store) > ClockTrust.tolerance {
                return .differsFromStore(reading.wall - store)
            }
        }
        // Records have whole seconds, and another node's clock may be ahead by the tolerance.
        let behind = newestRecord - reading.wall
        if behind > ClockTrust.tolerance { return .behindRecord(behind) }
        if let certificateEnd, reading.wall >= certificateEnd {
            return .pastCertificate(reading.wall - certificateEnd)
        }
        return nil
    }

    private mutating func follow(_ reference: Int64, at uptime: Int64) {
        guard let mark else {
            self.mark = Mark(wall: reference, uptime: uptime)
            return
        }
        let passed = uptime - mark.uptime
        guard passed >= ClockTrust.markAge else { return }
        let expected = mark.time(at: uptime)
        let most = passed / ClockTrust.leastRatio
        self.mark = Mark(wall: expected + min(max(reference - expected, -most), most), uptime: uptime)
    }
}
