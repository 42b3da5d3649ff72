import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The seeds of the Ed25519 keys that sign deliveries. The next seed is made together with the current one,
/// so that receivers know its public half before it signs anything. It is random, so that no key can be
/// derived from another.
package struct WebhookSeeds: Sendable {
    package var current: Secret
    /// Signs nothing yet.
    package var next: Secret
}

extension Deployment {
    /// Created at first use.
    package func webhookSeeds() throws(OperationalError) -> WebhookSeeds { try storedWebhookSeeds().seeds }

    private func storedWebhookSeeds() throws(OperationalError) -> (seeds: WebhookSeeds, stored: [UInt8]) {
        var stored = try store.value(of: .webhookKeys)
        if stored == nil {
            let fresh = WebhookSeeds(
                current: Secret(random: AnswerKey.seedCount), next: Secret(random: AnswerKey.seedCount))
            stored = try store.setIfAbsent(.webhookKeys, to: sealed(fresh))
        }
        guard let stored, let parts = WebhookSeeds.parts(of: stored),
            let current = open(parts.current, as: .webhookKey("current")),
            let next = open(parts.next, as: .webhookKey("next"))
        else {
            throw OperationalError(
                .failed, message: "webhook keys: their sealed value cannot be opened; the row was altered")
        }
        return (WebhookSeeds(current: current, next: next), stored)
    }

    /// Makes the next key the current one, and a new key the next one. Fails, and changes nothing, if another
    /// process rotated at the same time: after two rotations no receiver would know the key.
    package func rotateWebhookKey() throws(OperationalError) -> WebhookSeeds {
        let (seeds, stored) = try storedWebhookSeeds()
        let rotated = WebhookSeeds(current: seeds.next, next: Secret(random: AnswerKey.seedCount))
        let draft = auditDraft(for: .webhookKeyRotate, on: .deployment)
        guard try store.exchange(.webhookKeys, from: stored, to: sealed(rotated), recording: draft) == .yes
        else {
            throw OperationalError(
                .failed, message: "webhook key: another process rotated it in the meantime; nothing was done")
        }
        generation.advance()
        return rotated
    }

    /// Each part is sealed for its own slot, so that neither can replace the other.
    private func sealed(_ seeds: WebhookSeeds) -> [UInt8] {
        seal(seeds.current, as: .webhookKey("current")) + seal(seeds.next, as: .webhookKey("next"))
    }
}

extension WebhookSeeds {
    /// The parts of a stored value; nil if it has another length.
    fileprivate static func parts(of stored: [UInt8]) -> (current: [UInt8], next: [UInt8])? {
        let count = MasterKey.sealedCount(of: AnswerKey.seedCount)
        guard stored.count == 2 * count else { return nil }
        return (Array(stored[..<count]), Array(stored[count...]))
    }

    /// Seals each part of a stored value again; nil if one does not open.
    static func sealAgain(
        _ stored: [UInt8], by seal: (_ part: [UInt8], _ binding: SealBinding) -> [UInt8]?
    ) -> [UInt8]? {
        guard let parts = parts(of: stored), let current = seal(parts.current, .webhookKey("current")),
            let next = seal(parts.next, .webhookKey("next"))
        else { return nil }
        return current + next
    }
}

extension SealBinding {
    fileprivate static func webhookKey(_ row: String) -> SealBinding {
        SealBinding(kind: "webhook-key", row: row)
    }
}
