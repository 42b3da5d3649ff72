import CountersignAuthority
import CountersignGate
import CountersignWire

extension FailingStore {
    func takeDelivery(
        dueAt now: Int64, leaving busy: Set<String>, for seconds: Int64
    ) throws(OperationalError) -> WebhookDelivery? {
        try base.takeDelivery(dueAt: now, leaving: busy, for: seconds)
    }
    func finishDelivery(_ number: Int64) throws(OperationalError) { try base.finishDelivery(number) }
    func postponeDelivery(_ number: Int64, until due: Int64, because failure: String) throws(OperationalError)
    {
        try base.postponeDelivery(number, until: due, because: failure)
    }
    func buryDelivery(_ number: Int64, at now: Int64, because failure: String) throws(OperationalError) {
        try base.buryDelivery(number, at: now, because: failure)
    }
    func add(_ delivery: WebhookDelivery) throws(OperationalError) { try base.add(delivery) }
    func dropDeliveries(of endpoint: String) throws(OperationalError) {
        try base.dropDeliveries(of: endpoint)
    }
    func deadDeliveries(of endpoint: String?, limit: Int) throws(OperationalError) -> [WebhookDelivery] {
        try base.deadDeliveries(of: endpoint, limit: limit)
    }
    func reviveDeliveries(of event: String?, at now: Int64) throws(OperationalError) -> Int {
        try base.reviveDeliveries(of: event, at: now)
    }
    func forgetDeadDeliveries(before time: TrustedTime) throws(OperationalError) {
        try base.forgetDeadDeliveries(before: time)
    }
    func deliveryCounts() throws(OperationalError) -> WebhookCounts { try base.deliveryCounts() }
    func droppedDeliveries() throws(OperationalError) -> [WebhookDrops] { try base.droppedDeliveries() }
    func announceWithheld(at now: TrustedTime) throws(OperationalError) {
        try base.announceWithheld(at: now)
    }
    func announceGuesses(
        _ failed: Int64, ofAccount number: Int64, at now: TrustedTime
    ) throws(OperationalError) -> Bool {
        try base.announceGuesses(failed, ofAccount: number, at: now)
    }
    func announceStages(at now: TrustedTime) throws(OperationalError) { try base.announceStages(at: now) }
}
