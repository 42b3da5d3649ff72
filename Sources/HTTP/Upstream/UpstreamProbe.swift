import CountersignWire

/// Checks in the background whether the upstream accepts connections, so that readiness needs no traffic.
/// Confined to one loop.
///
/// A response or a new connection within the last seconds is sufficient. Otherwise the probe opens a
/// connection of its own, including TLS, and closes it at once; so there is at most one connection beyond
/// the limit, briefly. The upstream is down after two consecutive failures, and up again after one success.
package final class UpstreamProbe: @unchecked Sendable {
    private static let freshSeconds: Int64 = 5
    private static let longestPatience = 5
    private static let failuresUntilDown = 2

    private let target: UpstreamTarget
    private let loop: EventLoop
    private var dialer: UpstreamDialer
    private let report: @Sendable (_ failure: String?) -> Void
    private var isProbing = false
    private var failures = 0
    private var nextProbe = Int64.min
    /// The last reported state; nil before the first report.
    private var isUp: Bool?

    /// Called on the loop, or before it starts. The probe calls `report` on the loop, with nil when the
    /// upstream comes up, and with one sentence at each failed probe while it is down.
    package init(
        target: UpstreamTarget, loop: EventLoop, deadlines: Deadlines,
        report: @escaping @Sendable (_ failure: String?) -> Void
    ) {
        self.target = target
        self.loop = loop
        self.report = report
        dialer = UpstreamDialer(
            target: target, loop: loop, patience: UpstreamProbe.patience(within: deadlines))
        loop.onTick { [self] in check() }
    }

    private static func patience(within deadlines: Deadlines) -> Int {
        min(deadlines.upstreamConnect, longestPatience)
    }

    /// Replaces the deadlines, and checks at the next tick. Called on the loop.
    package func replace(deadlines: Deadlines) {
        dialer.patience = UpstreamProbe.patience(within: deadlines)
        nextProbe = .min
    }

    /// Checks now instead of at the next tick.
    package func start() { loop.perform { self.check() } }

    private func check() {
        let now = loop.seconds
        if let last = target.lastSuccess, now - last < UpstreamProbe.freshSeconds { return didSucceed() }
        guard !isProbing, nextProbe <= now else { return }
        isProbing = true
        Task.detached(executorPreference: loop) { await self.probe() }
    }

    private func probe() async {
        do {
            try await dialer.connect().stream.close()
            didSucceed()
        } catch {
            failures += 1
            if isUp != true || failures >= UpstreamProbe.failuresUntilDown {
                isUp = false
                report(error.detail)
            }
        }
        isProbing = false
        // The probe repeats a first failure sooner.
        nextProbe = loop.seconds + (failures == 1 ? 1 : failures == 0 ? UpstreamProbe.freshSeconds : 2)
    }

    private func didSucceed() {
        failures = 0
        guard isUp != true else { return }
        isUp = true
        report(nil)
    }
}
