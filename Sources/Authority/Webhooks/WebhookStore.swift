import CountersignGate
import CountersignWire

/// The durable outbox of webhooks: an event waits here for each endpoint that is told of it, from the
/// transaction in which it happened until it was delivered. It may be delivered more than once, and in any
/// order.
package protocol WebhookStore: Sendable {
    /// Takes the delivery that has been due for longest, and has no other process take it for `seconds`; nil
    /// if none is due. Leaves out those of `busy` endpoints. `now` is in whole Unix seconds.
    func takeDelivery(
        dueAt now: Int64, leaving busy: Set<String>, for seconds: Int64
    ) throws(OperationalError) -> WebhookDelivery?
    /// Deletes one that was delivered.
    func finishDelivery(_ number: Int64) throws(OperationalError)
    /// Has it wait after a failed attempt. `due` is in whole Unix seconds.
    func postponeDelivery(_ number: Int64, until due: Int64, because failure: String) throws(OperationalError)
    /// Gives it up after the last attempt; it stays in the list of dead letters.
    func buryDelivery(_ number: Int64, at now: Int64, because failure: String) throws(OperationalError)

    func add(_ delivery: WebhookDelivery) throws(OperationalError)
    /// Deletes all of an endpoint.
    func dropDeliveries(of endpoint: String) throws(OperationalError)
    /// The latest ones that were given up; of one endpoint, or of all.
    func deadDeliveries(of endpoint: String?, limit: Int) throws(OperationalError) -> [WebhookDelivery]
    /// Has those that were given up be tried again: that event, or all; returns their number.
    func reviveDeliveries(of event: String?, at now: Int64) throws(OperationalError) -> Int
    /// Deletes those that were given up before that time.
    func forgetDeadDeliveries(before time: TrustedTime) throws(OperationalError)
    func deliveryCounts() throws(OperationalError) -> WebhookCounts
    /// Tells all that is to be told of the stages of retirements that were reached since the last call, once
    /// for all processes. `now` is in whole Unix seconds.
    func announceStages(at now: TrustedTime) throws(OperationalError)
}

/// One event for one endpoint.
package struct WebhookDelivery: Sendable, Equatable {
    package var number: Int64
    /// The endpoint's id.
    package var endpoint: String
    /// The event's id.
    package var event: String
    /// Whole Unix seconds.
    package var created: Int64
    /// Attempts that failed.
    package var attempts: Int64
    /// The payload.
    package var body: [UInt8]
    /// Why the last attempt failed; nil before the first.
    package var failure: String?
    /// When it was given up, in whole Unix seconds; nil as long as it is not.
    package var givenUp: Int64?

    package init(
        number: Int64, endpoint: String, event: String, created: Int64, attempts: Int64, body: [UInt8],
        failure: String? = nil, givenUp: Int64? = nil
    ) {
        (self.number, self.endpoint, self.event, self.created) = (number, endpoint, event, created)
        (self.attempts, self.body, self.failure, self.givenUp) = (attempts, body, failure, givenUp)
    }
}

package struct WebhookCounts: Sendable, Equatable {
    package var waiting: Int64 = 0
    package var dead: Int64 = 0
    /// When the oldest that waits happened, in whole Unix seconds; nil if none waits.
    package var oldest: Int64?

    package init(waiting: Int64 = 0, dead: Int64 = 0, oldest: Int64? = nil) {
        (self.waiting, self.dead, self.oldest) = (waiting, dead, oldest)
    }
}

/// When a failed delivery is tried again.
package enum WebhookSchedule {
    /// Seconds after each failed attempt: some two and a half days together.
    static let pauses: [Int64] = [
        5, 30, 120, 600, 3_600, 7_200, 14_400, 21_600, 43_200, 43_200, 86_400,
    ]

    /// The time after that many failed attempts, from 1; nil if it is given up. `share` is a random part, 0
    /// to 1, of the tenth by which the pause may be longer, so that not all come at once.
    package static func next(afterAttempts attempts: Int64, at now: Int64, share: Double) -> Int64? {
        guard attempts >= 1, attempts <= Int64(pauses.count) else { return nil }
        let pause = pauses[Int(attempts) - 1]
        return now + pause + Int64(Double(pause) * 0.1 * share)
    }
}
