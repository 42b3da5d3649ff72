import CountersignAuthority
import CountersignGate
import CountersignWire

/// What judges the clock of a deployment that is opened.
package enum DeploymentClock: Sendable {
    /// The server that opens the deployment, by its ``ClockKeeper``.
    case watched(TrustedClock)
    /// ``Configuration/openDeployment``, once and as a server does when it starts. For commands.
    case judgedOnce(TrustedClock)

    var clock: TrustedClock {
        switch self {
        case .watched(let clock), .judgedOnce(let clock): clock
        }
    }
}

/// The clock of a command, in a process of its own. It is judged by what the servers of the data folder have
/// noted of theirs (``ClockRecord``), by the newest audit record, and by the database's clock if there is
/// one. In doubt, the deployment makes nothing that expires (``Deployment/requireClock(for:)``), and records
/// have the estimate as their time.
struct CommandClock {
    private let clock: TrustedClock
    private let deployment: Deployment

    init(_ clock: TrustedClock, of deployment: Deployment) {
        (self.clock, self.deployment) = (clock, deployment)
    }

    func judge() throws(OperationalError) {
        let found = ClockRecord.find(in: deployment.folder)
        var beginning = ClockTrust.Beginning(found, boot: ClockRecord.boot)
        beginning.newestRecord = try deployment.newestClockRecord()
        beginning.isWatched = false
        if let heard = try storeTime() {
            beginning.needsStore = true
            clock.hear(storeTime: heard.time, at: heard.uptime)
        }
        clock.begin(beginning)
        // As a running server follows it, whose own clock may be another machine's.
        if clock.isInDoubt, let latest = try deployment.replayConfirmation(),
            latest.number > found.record?.confirmation ?? 0, ClockKeeper.isRecent(latest.at, by: clock)
        {
            clock.confirm()
        }
    }

    /// Notes that an operator has confirmed this machine's clock, for later commands and for the next server.
    /// A running server writes the same record. Returns false if the database's clock contradicts it.
    func confirm(_ confirmation: Int64) throws(OperationalError) -> Bool {
        guard clock.confirm() else { return false }
        try ClockRecord.file(in: deployment.folder).replace(
            by: ClockRecord(boot: ClockRecord.boot, trust: clock.trust, confirmation: confirmation).bytes)
        return true
    }

    /// The database's clock in milliseconds, and this machine's uptime at that moment; nil for a file.
    private func storeTime() throws(OperationalError) -> (time: Int64, uptime: Int64)? {
        let asked = TrustedClock.machine().uptime
        guard let time = try deployment.store.clock() else { return nil }
        return (time, asked + (TrustedClock.machine().uptime - asked) / 2)
    }
}

extension Deployment {
    /// Judges the clock of a command that has opened this deployment.
    func judge(_ clock: TrustedClock) throws(OperationalError) { try CommandClock(clock, of: self).judge() }

    /// Notes that an operator has confirmed the clock of this machine, beside the confirmation in the store.
    /// Returns false if the database's clock contradicts it: then the clock stays in doubt.
    package func noteConfirmedClock(
        _ clock: TrustedClock, confirmation: Int64
    ) throws(OperationalError) -> Bool {
        try CommandClock(clock, of: self).confirm(confirmation)
    }

    /// The time of the newest audit record in milliseconds, bounded so that an altered one cannot overflow.
    func newestClockRecord() throws(OperationalError) -> Int64 {
        min(try newestAuditTime(), ClockRecord.latest / 1_000) * 1_000
    }
}
