import CountersignAuthority
import CountersignTrust
import CountersignWire

/// What other parties are told and handed: events for endpoints, and pin manifests for apps.
extension Doctor {
    /// Seconds after which an event that waits is late: the endpoint has failed five times.
    private static let late: Int64 = 3_600

    mutating func checkWebhooks(of deployment: Deployment) {
        let counts: WebhookCounts
        let endpoints: Int
        do throws(OperationalError) {
            counts = try deployment.store.deliveryCounts()
            endpoints = try deployment.webhookSettings().endpoints.count
        } catch {
            add(
                .webhooks, verdict: .error, message: error.message, expected: "an outbox that can be read",
                command: ownCommand("audit", "verify"))
            return
        }
        guard endpoints > 0 || counts.waiting > 0 || counts.dead > 0 else { return }
        if counts.dead > 0 {
            add(
                .webhooks, verdict: .warning, message: "\(counts.dead) events were given up",
                expected: "none: mend the endpoint, and send them again",
                command: ownCommand("webhook", "dead"))
        }
        if let oldest = counts.oldest, now - oldest > Doctor.late {
            add(
                .webhooks, verdict: .warning,
                message: "an event has waited since \(CivilTime.rfc3339Text(oldest)); \(counts.waiting) wait",
                expected: "endpoints that answer with 2xx", command: ownCommand("webhook", "list"))
        }
        if counts.dead == 0, counts.oldest.map({ now - $0 <= Doctor.late }) ?? true {
            add(.webhooks, message: "\(endpoints) endpoints; \(counts.waiting) events wait")
        }
    }

    mutating func checkPins(of deployment: Deployment) {
        do throws(OperationalError) {
            let manifests = try deployment.pinManifests()
            for app in try deployment.store.apps().map(\.name) {
                guard let text = manifests.text(of: app) else { continue }
                let end = try? SignedManifest(json: Array(text.utf8)).unverified.validity.upperBound
                guard let end, end > now else {
                    let how = end.map { "is over since \(CivilTime.rfc3339Text($0))" } ?? "cannot be read"
                    add(
                        .pins, verdict: .warning, message: "app \(app): the pin manifest \(how)",
                        expected: "a newer one: apps that start without one do not take it up",
                        command: Doctor.command("countersign", "pins", "list"))
                    continue
                }
                add(.pins, message: "app \(app): the pin manifest holds until \(CivilTime.rfc3339Text(end))")
            }
        } catch {
            add(
                .pins, verdict: .error, message: error.message, expected: "manifests that can be read",
                command: ownCommand("audit", "verify"))
        }
    }
}
