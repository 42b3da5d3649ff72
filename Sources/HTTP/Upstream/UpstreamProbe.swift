import CountersignWire

/// Finds out whether the upstream takes connections, in the background, so that readiness needs no traffic. Confined to
/// one loop.
///
/// An answer or a new connection of the last seconds is proof enough. Only without one does the probe open a connection
/// of its own, TLS included, and close it at once; so there is at most one beyond the limit, for a moment. The upstream
/// is down after two failures in a row, and up again after one success.
package final class UpstreamProbe: @unchecked Sendable {
    private static let freshSeconds: Int64 = 5
    private static let longestPatience = 5
    private static let failuresUntilDown = 2

    private let target: UpstreamTarget
    private let loop: EventLoop
    private let dialer: UpstreamDialer
    private let report: @Sendable (_ failure: String?) -> Void
    private var isProbing = false
    private var failures = 0
    private var nextProbe = Int64.min
    /// What was reported last; nil before the first report.
    private var isUp: Bool?

    /// On the loop, or before it starts. `report` is called on the loop with nil when the upstream comes up, and with
    /// one sentence at each failed probe while it is down.
    package init(
        target: UpstreamTarget, loop: EventLoop, deadlines: Deadlines,
        report: @escaping @Sendable (_ failure: String?) -> Void
    ) {
        self.target = target
        self.loop = loop
        self.report = report
        let patience = min(deadlines.upstreamConnect, UpstreamProbe.longestPatience)
        dialer = UpstreamDialer(target: target, loop: loop, patience: patience)
        loop.onTick { [self] in look() }
    }

    /// Looks now instead of at the next tick.
    package func start() { loop.perform { self.look() } }

    private func look() {
        let now = loop.seconds
        if let last = target.lastSuccess, now - last < UpstreamProbe.freshSeconds { return didSucceed() }
        guard !isProbing, nextProbe <= now else { return }
        isProbing = true
        Task.detached(executorPreference: loop) { await self.probe() }
    }

    private func probe() async {
        do throws(Refusal) {
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
        // A first failure is looked into soon.
        nextProbe = loop.seconds + (failures == 1 ? 1 : failures == 0 ? UpstreamProbe.freshSeconds : 2)
    }

    private func didSucceed() {
        failures = 0
        guard isUp != true else { return }
        isUp = true
        report(nil)
    }
}
