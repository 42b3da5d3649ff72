import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Endpoints, as commands change them. The value in the store is JSON, and its row is authenticated: a writer
/// to the database can neither have the server call an address of its choice nor restore an endpoint that was
/// removed.
extension Deployment {
    package func webhookSettings() throws(OperationalError) -> WebhookSettings {
        try webhookSettings(from: store.value(of: .webhooks))
    }

    private func webhookSettings(from stored: [UInt8]?) throws(OperationalError) -> WebhookSettings {
        guard let stored else { return WebhookSettings() }
        guard let settings = WebhookSettings(document: stored) else {
            throw OperationalError(
                .failed, message: "webhooks: the value in the store cannot be read; nothing is delivered")
        }
        return settings
    }

    package func add(_ endpoint: WebhookEndpoint) throws(OperationalError) {
        if let app = endpoint.app { _ = try self.app(app) }
        try change(.webhookAdd, of: endpoint) { (settings) throws(OperationalError) in
            guard settings.endpoints.count < WebhookSettings.most else {
                throw OperationalError(
                    .failed, message: "there are \(WebhookSettings.most) webhooks already")
            }
            settings.endpoints.append(endpoint)
        }
    }

    /// Removes it with all that waits for it.
    package func removeWebhook(_ id: String) throws(OperationalError) -> WebhookEndpoint {
        let found = try webhook(id)
        try change(.webhookRemove, of: found) { (settings) throws(OperationalError) in
            settings.endpoints.removeAll { $0.id == id }
        }
        try store.dropDeliveries(of: id)
        return found
    }

    /// The endpoint of that id.
    package func webhook(_ id: String) throws(OperationalError) -> WebhookEndpoint {
        guard let found = try webhookSettings().endpoints.first(where: { $0.id == id }) else {
            throw OperationalError(
                .missing, message: "webhook \(id): there is none; `countersign webhook list` lists them")
        }
        return found
    }

    /// Adds an event to the outbox that this endpoint alone is told.
    package func testWebhook(_ endpoint: WebhookEndpoint) throws(OperationalError) -> String {
        let id = WebhookNotice.makeID()
        let notice = WebhookNotice(.test, at: clock.estimate, app: endpoint.app)
        try store.add(
            WebhookDelivery(
                number: 0, endpoint: endpoint.id, event: id, created: clock.estimate, attempts: 0,
                body: notice.body(id: id)))
        return id
    }

    private func change(
        _ action: AuditAction, of endpoint: WebhookEndpoint,
        by change: (inout WebhookSettings) throws(OperationalError) -> Void
    ) throws(OperationalError) {
        while true {
            let stored = try store.value(of: .webhooks)
            var settings = try webhookSettings(from: stored)
            try change(&settings)
            let value = settings.document
            let details: [(name: String, value: JSONValue)] = [
                ("webhook", .string(endpoint.id)), ("host", .string(endpoint.host)),
                ("app", .optional(endpoint.app?.description)),
                ("addresses", .string(endpoint.reach.rawValue)),
            ]
            let draft = auditDraft(for: action, on: .deployment, details: details)
            let outcome: ChangeOutcome
            if let stored {
                outcome = try store.exchange(.webhooks, from: stored, to: value, recording: draft)
            } else {
                _ = try store.setIfAbsent(.webhooks, to: WebhookSettings().document)
                continue
            }
            // Another administrator was faster.
            guard outcome == .yes else { continue }
            generation.advance()
            return
        }
    }
}
