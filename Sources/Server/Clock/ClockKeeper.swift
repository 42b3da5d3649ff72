import CountersignAuthority
import CountersignGate
import CountersignReplay
import CountersignWire

/// Watches a server's clock: saves its state to disk, follows confirmations, and reports when the server
/// stops or begins to trust it. Confined to the main thread, apart from `clock`.
final class ClockKeeper {
    /// The number of looks between two writes of the record while nothing changes: a minute.
    private static let looksBetweenWrites = 30
    /// The most seconds between a confirmation and the moment at which the server follows it.
    private static let mostDelay: Int64 = 600

    let clock: TrustedClock
    private let deployment: Deployment
    private let file: RecordFile
    private let boot: String
    private let log: EventLog?
    private var confirmation: Int64
    private var seenGeneration: UInt64?
    private var wasTrusted: Bool
    private var written: ClockTrust?
    private var looks = 0
    /// Why the record was not written the last time.
    private var failure: String?

    /// Begins to judge the clock. `certificateEnd` is in whole Unix seconds; nil without TLS. If there is a
    /// database, call it after the database's clock was read.
    init(
        _ clock: TrustedClock, of deployment: Deployment, needsStore: Bool, certificateEnd: Int64?,
        log: EventLog?
    ) throws(OperationalError) {
        (self.clock, self.deployment, self.log) = (clock, deployment, log)
        file = ClockRecord.file(in: deployment.folder)
        boot = ClockRecord.boot
        let found = ClockRecord.find(in: deployment.folder)
        if case .unreadable(let reason) = found {
            log?.note(
                subject: "clock", message: "\(reason): the clock is not trusted for ten minutes")
        }
        var beginning = ClockTrust.Beginning(found, boot: boot)
        beginning.newestRecord = try deployment.newestClockRecord()
        beginning.certificateEnd = certificateEnd.map { $0 * 1_000 }
        beginning.needsStore = needsStore
        // A confirmation of an earlier doubt does not apply to a later one.
        if let record = found.record {
            confirmation = record.confirmation
        } else {
            confirmation = try deployment.replayConfirmation()?.number ?? 0
        }
        wasTrusted = found.record?.trust.isTrusted ?? true
        clock.begin(beginning)
        try look()
    }

    /// The reason why the clock is not trusted, for `/ready`; nil while it agrees with the other clocks. A
    /// server whose clock agrees again serves; only verdicts that depend on the clock wait.
    static func failure(of clock: TrustedClock) -> String? {
        clock.trust.doubt.map { "\($0.text); \(ClockKeeper.remedy)" }
    }

    private static let remedy =
        "until the clock is right, or `countersign replay confirm-clock --yes` confirms it, refusals that "
        + "depend on it are `unavailable`, and nothing is deleted because of its age"

    /// Whether a confirmation at `time` is of the clock as it is now.
    static func isRecent(_ time: Int64, by clock: TrustedClock) -> Bool {
        let (delay, isFar) = time.subtractingReportingOverflow(clock.now)
        return !isFar && delay.magnitude <= UInt64(mostDelay)
    }

    /// Call every few seconds.
    func look() throws(OperationalError) {
        try followConfirmation()
        let trust = clock.trust
        if trust.isTrusted != wasTrusted { try report(trust) }
        let hasChanged = trust.isTrusted != written?.isTrusted || trust.doubt != written?.doubt
        looks += 1
        if hasChanged || looks >= ClockKeeper.looksBetweenWrites { keep(trust) }
    }

    /// Call when the server stops.
    func stop() { keep(clock.trust) }

    private func followConfirmation() throws(OperationalError) {
        let generation = deployment.generation.current
        guard generation != seenGeneration else { return }
        if let latest = try deployment.replayConfirmation(), latest.number > confirmation {
            if ClockKeeper.isRecent(latest.at, by: clock), !clock.confirm() {
                // The confirmation takes effect once the clock agrees with the database's, if that is soon.
                return
            }
            (confirmation, written) = (latest.number, nil)
        }
        seenGeneration = generation
    }

    private func report(_ trust: ClockTrust) throws(OperationalError) {
        wasTrusted = trust.isTrusted
        let text = trust.isTrusted ? "the clock is trusted again" : trust.reason
        let isRightAgain = !trust.isTrusted && trust.doubt == nil
        log?.note(
            subject: "clock",
            message: trust.isTrusted
                ? text
                : isRightAgain
                    ? "\(text), and agrees again: it will be trusted in ten minutes"
                    : "\(text); \(ClockKeeper.remedy)")
        try deployment.recordClock(isTrusted: trust.isTrusted, reason: text)
    }

    private func keep(_ trust: ClockTrust) {
        do throws(OperationalError) {
            try file.replace(
                by: ClockRecord(boot: boot, trust: trust, confirmation: confirmation).bytes)
            (written, looks, failure) = (trust, 0, nil)
        } catch {
            if failure != error.message { log?.note(subject: "clock", message: error.message) }
            failure = error.message
        }
    }
}

extension ClockTrust {
    /// Why the clock is not trusted.
    fileprivate var reason: String {
        doubt?.text ?? lastDoubt.map { "for a time, \($0.text)" }
            ?? "the clock was not trusted before the start"
    }
}
