import CountersignAuthority
import CountersignGate
import CountersignWire

/// Keeps the limits on logins over a restart, and lets logins go that nobody finished: both once a second. A process that is
/// killed forgets at most the attempts of its last second.
final class LimitKeeper: @unchecked Sendable {
    let limits: LoginLimits
    private let file: LimitFile
    private let pending: PendingLogins
    private let log: EventLog?
    private let clock: any TimeSource
    /// What the file holds, by ``LoginLimits/changes``; touched by the ticker's thread alone.
    private var written: UInt64 = 0
    /// Touched by who starts and stops the server alone.
    private var ticker: Ticker?

    /// Takes up what the last process left, or shares what a running one has. Where that is damaged it starts
    /// anew and says so: to refuse all logins for it would make a torn write an outage.
    init(
        _ folder: DataFolder, _ rules: LoginLimits.Rules, sharing descriptor: FileDescriptor?, pending: PendingLogins,
        log: EventLog?, clock: any TimeSource
    ) throws(Fault) {
        file = LimitFile(folder.loginLimits)
        if let descriptor {
            limits = try LoginLimits(rules, sharing: descriptor)
        } else {
            switch try file.read(rules, at: clock.now * 1000) {
            case .limits(let kept): limits = kept
            case .none: limits = LoginLimits(rules)
            case .damaged:
                limits = LoginLimits(rules)
                log?.note("login-limits", "\(folder.loginLimits) is damaged: earlier attempts are forgotten")
            }
        }
        self.pending = pending
        self.log = log
        self.clock = clock
        written = limits.changes
    }

    func start() throws(Fault) {
        let ticker = Ticker(every: 1) { [weak self] in self?.tick() }
        try ticker.start()
        self.ticker = ticker
    }

    /// Writes down what is left. After the loops have ended, so that nothing is counted behind it.
    func stop() {
        ticker?.stop()
        ticker = nil
    }

    private func tick() {
        pending.expire(at: clock.now)
        let changes = limits.changes
        guard changes != written else { return }
        do throws(Fault) {
            try file.write(limits.snapshots(at: clock.now * 1000))
            written = changes
        } catch {
            log?.note("login-limits", error.message)
        }
    }
}
