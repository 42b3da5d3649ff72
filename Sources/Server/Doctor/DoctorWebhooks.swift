import CountersignAuthority
import CountersignWire

extension Doctor {
    /// Seconds after which an event that waits is late: the endpoint has failed five times.
    private static let late: Int64 = 3_600
    /// Seconds for which events that were dropped are reported.
    private static let recent: Int64 = 86_400

    mutating func checkWebhooks(of deployment: Deployment) {
        let counts: WebhookCounts
        let dropped: [WebhookDrops]
        let endpoints: Int
        do throws(OperationalError) {
            counts = try deployment.store.deliveryCounts()
            dropped = try deployment.store.droppedDeliveries().filter { now - $0.last < Doctor.recent }
            endpoints = try deployment.webhookSettings().endpoints.count
        } catch {
            add(
                .webhooks, verdict: .error, message: error.message, expected: "an outbox that can be read")
            return
        }
        guard endpoints > 0 || counts.waiting > 0 || counts.dead > 0 else { return }
        if counts.dead > 0 {
            add(
                .webhooks, verdict: .warning, message: "\(counts.dead) events were given up",
                expected: "none: mend the endpoint, and send them again",
                command: ownCommand("webhook", "retry", "--all"))
        }
        if let oldest = counts.oldest, now - oldest > Doctor.late {
            add(
                .webhooks, verdict: .warning,
                message: "an event has waited since \(CivilTime.rfc3339Text(oldest)); \(counts.waiting) wait",
                expected: "endpoints that answer with 2xx", command: ownCommand("webhook", "list"))
        }
        for drops in dropped {
            add(
                .webhooks, verdict: .warning,
                message: """
                    \(drops.endpoint) has lost \(drops.count) events, the last at \
                    \(CivilTime.rfc3339Text(drops.last)): its share of the outbox was full
                    """,
                expected: "an endpoint that takes events", command: ownCommand("webhook", "list"))
        }
        if dropped.isEmpty, counts.dead == 0, counts.oldest.map({ now - $0 <= Doctor.late }) ?? true {
            add(.webhooks, message: "\(endpoints) endpoints; \(counts.waiting) events wait")
        }
    }
}
