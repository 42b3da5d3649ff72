import CountersignAuthority
import CountersignGate
import CountersignWire

/// Writes the meter down every two seconds, on a thread of its own, so that no loop waits for a disk. `kill -9` loses at most
/// what was counted since.
///
/// Safe to share: the ledger is touched by its ticker's thread alone, `ticker` by who starts and stops it.
final class MeterWriter: @unchecked Sendable {
    private static let seconds = 2

    private var ledger: MeterLedger
    private let log: EventLog?
    private let clock: any TimeSource
    private var ticker: Ticker?

    init(_ ledger: MeterLedger, log: EventLog?, clock: any TimeSource) {
        self.ledger = ledger
        self.log = log
        self.clock = clock
    }

    func start() throws(Fault) {
        let ticker = Ticker(every: MeterWriter.seconds) { [self] in write() }
        try ticker.start()
        self.ticker = ticker
    }

    /// Writes what is left and ends the thread. After the loops have ended, so that nothing is counted behind it.
    func stop() {
        ticker?.stop()
        ticker = nil
    }

    private func write() {
        do throws(Fault) { try ledger.write(at: clock.now) } catch { log?.note("meter", error.message) }
    }
}
