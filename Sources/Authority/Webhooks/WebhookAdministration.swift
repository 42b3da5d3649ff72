import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Endpoints and their key, as commands change them. The value in the store is `HMAC ‖ JSON`, under the key
/// of the audit log: a writer to the database cannot have the server call an address of its choice. The
/// Ed25519 seed of each key is derived from the same key by the key's number, for this purpose alone; it is
/// therefore no value of its own to seal, move and rotate.
extension Deployment {
    package func webhookSettings() throws(OperationalError) -> WebhookSettings {
        try webhookSettings(from: store.value(of: .webhooks))
    }

    private func webhookSettings(from stored: [UInt8]?) throws(OperationalError) -> WebhookSettings {
        guard let stored else { return WebhookSettings() }
        let document = Array(stored.dropFirst(AuditChain.tagCount))
        guard let settings = WebhookSettings(unverified: stored),
            auditChain.isEqual(
                auditChain.tag(ofWebhooks: document), to: Array(stored.prefix(AuditChain.tagCount)))
        else {
            throw OperationalError(
                .failed, message: "webhooks: the value in the store was altered; nothing is delivered")
        }
        return settings
    }

    /// The seed of the key of that number.
    package func webhookSeed(number: Int64) -> Secret {
        let bytes = auditChain.webhookSeed(number: number)
        return Secret(copying: bytes.span)
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

    /// Makes the next key the current one, and returns its number.
    package func rotateWebhookKey() throws(OperationalError) -> Int64 {
        var number: Int64 = 0
        try change(.webhookKeyRotate, of: nil) { (settings) throws(OperationalError) in
            settings.keyNumber += 1
            number = settings.keyNumber
        }
        return number
    }

    /// Adds an event to the outbox that this endpoint alone is told.
    package func testWebhook(_ endpoint: WebhookEndpoint) throws(OperationalError) -> String {
        let id = WebhookNotice.makeID()
        let notice = WebhookNotice(.test, at: clock.now, app: endpoint.app)
        try store.add(
            WebhookDelivery(
                number: 0, endpoint: endpoint.id, event: id, created: clock.now, attempts: 0,
                body: notice.body(id: id)))
        return id
    }

    private func change(
        _ action: AuditAction, of endpoint: WebhookEndpoint?,
        by change: (inout WebhookSettings) throws(OperationalError) -> Void
    ) throws(OperationalError) {
        while true {
            let stored = try store.value(of: .webhooks)
            var settings = try webhookSettings(from: stored)
            try change(&settings)
            let document = settings.document
            let value = auditChain.tag(ofWebhooks: document) + document
            let details: [(name: String, value: JSONValue)] =
                endpoint.map {
                    [
                        ("webhook", .string($0.id)), ("host", .string($0.host)),
                        ("app", .optional($0.app?.description)),
                        ("addresses", .string($0.reach.rawValue)),
                    ]
                } ?? [("key", .integer(settings.keyNumber))]
            let draft = auditDraft(for: action, on: .deployment, details: details)
            let outcome: ChangeOutcome
            if let stored {
                outcome = try store.exchange(.webhooks, from: stored, to: value, recording: draft)
            } else {
                _ = try store.setIfAbsent(.webhooks, to: initialWebhooks)
                continue
            }
            // Another administrator was faster.
            guard outcome == .yes else { continue }
            generation.advance()
            return
        }
    }

    private var initialWebhooks: [UInt8] {
        let document = WebhookSettings().document
        return auditChain.tag(ofWebhooks: document) + document
    }
}
