import CountersignAuthority
import CountersignGate
import CountersignWire

/// Saves the login limits for a restart, and drops logins that their clients do not finish: both once a
/// second. A process that is killed loses at most the attempts of its last second.
///
/// Safe to share: once the ticker runs, only its thread touches `written` and `file`; only the thread that
/// starts and stops the server touches `ticker`; the rest is not replaced, and locks by itself.
final class LoginLimitPersistence: @unchecked Sendable {
    let limits: LoginLimits
    let guesses: AccountGuesses
    private let file: LimitFile
    private let guessFile: String
    private let pending: any PendingLoginTable
    private let log: EventLog?
    private let clock: any TimeSource
    /// The ``LoginLimits/changes`` that the file contains.
    private var written: UInt64 = 0
    /// The ``AccountGuesses/changes`` that the file contains.
    private var writtenGuesses: UInt64 = 0
    /// Finds the accounts of reports. Set it before ``start()``.
    var accounts: (any AccountStore)?
    private var ticker: Ticker?
    /// Those that nodes count together, to be set before ``start()``.
    var sharedLimits: SharedLoginLimits?
    private var ticks = 0
    /// Ticks between two removals of what counts no longer.
    private static let expiryTicks = 30

    /// Loads the limits that the last process saved, or shares those of a running one. If the file is
    /// damaged, starts with empty limits and logs it: refusing all logins would turn a torn write into an
    /// outage. If the running process is of a version with other tables, starts from the file, which lacks at
    /// most that process's last second.
    init(
        in folder: DataFolder, rules: LoginLimits.Rules, sharing descriptor: FileDescriptor?,
        pending: any PendingLoginTable,
        log: EventLog?, clock: any TimeSource
    ) throws(OperationalError) {
        file = LimitFile(folder.loginLimits)
        guessFile = folder.accountGuesses
        guesses = AccountGuesses.read(guessFile) ?? AccountGuesses()
        if let descriptor, let shared = try? LoginLimits(rules, sharing: descriptor) {
            limits = shared
        } else {
            if descriptor != nil {
                log?.note(
                    subject: "login-limits",
                    message: "the running server counts in other tables: counting goes on from the file")
            }
            switch try file.read(rules, at: clock.now * 1000) {
            case .limits(let kept): limits = kept
            case .none: limits = LoginLimits(rules)
            case .damaged:
                limits = LoginLimits(rules)
                log?.note(
                    subject: "login-limits",
                    message: "\(folder.loginLimits) is damaged: earlier attempts are forgotten")
            }
        }
        self.pending = pending
        self.log = log
        self.clock = clock
        written = limits.changes
    }

    func start() throws(OperationalError) {
        let ticker = Ticker(every: 1) { [weak self] in self?.tick() }
        try ticker.start()
        self.ticker = ticker
    }

    /// Saves the last changes. Call after the loops have ended, so that nothing is counted afterwards.
    func stop() {
        ticker?.stop()
        ticker = nil
    }

    /// Saves the failed logins of accounts, and reports accounts that have many. Does not report names
    /// without an account.
    private func keepGuesses() {
        for report in guesses.takeReports(at: clock.now) {
            guard let account = try? accounts?.account(report.account, of: report.app) else { continue }
            log?.note(
                subject: "guesses",
                message: "app \(report.app), account \(account.number): \(report.failed) failed logins since "
                    + "the last report; reports of an account are at least an hour apart")
        }
        let changes = guesses.changes
        guard changes != writtenGuesses else { return }
        do {
            try guesses.write(to: guessFile)
            writtenGuesses = changes
        } catch {
            log?.note(subject: "guesses", message: error.message)
        }
    }

    /// Call once a second.
    func tick() {
        // While a shared store is away, they expire all the same, and are removed later.
        try? pending.expire(at: clock.now)
        ticks += 1
        if ticks.isMultiple(of: LoginLimitPersistence.expiryTicks), clock.sweepTime != nil {
            try? sharedLimits?.expire()
        }
        keepGuesses()
        let changes = limits.changes
        guard changes != written else { return }
        do {
            try file.write(limits.snapshots(at: clock.now * 1000))
            written = changes
        } catch {
            log?.note(subject: "login-limits", message: error.message)
        }
    }
}
