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

    /// Adds a delivery that an administrator asks for. Throws if the endpoint's share of the outbox is full.
    func add(_ delivery: WebhookDelivery) throws(OperationalError)
    /// Deletes all deliveries of an endpoint, and the count of its dropped ones.
    func dropDeliveries(of endpoint: String) throws(OperationalError)
    /// The latest ones that were given up; of one endpoint, or of all.
    func deadDeliveries(of endpoint: String?, limit: Int) throws(OperationalError) -> [WebhookDelivery]
    /// Makes deliveries that were given up due again: those of one event, or all, as far as the endpoint's
    /// share of the outbox has room. Returns how many.
    func reviveDeliveries(of event: String?, at now: Int64) throws(OperationalError) -> Int
    /// Deletes those that were given up before that time.
    func forgetDeadDeliveries(before time: TrustedTime) throws(OperationalError)
    func deliveryCounts() throws(OperationalError) -> WebhookCounts
    /// The deliveries that endpoints lost because their share was full, sorted by endpoint id.
    func droppedDeliveries() throws(OperationalError) -> [WebhookDrops]
    /// After ``WebhookShares/window``, adds an event that states how many events of an account were withheld.
    /// Only one of all processes adds it. `now` is in whole Unix seconds.
    func announceWithheld(at now: TrustedTime) throws(OperationalError)
    /// Adds an event about failed logins of an account, unless one was added within an hour of `now`: at most
    /// one, whichever process asks. Returns whether the count need not be added again: it was added, or no
    /// endpoint receives such events.
    func announceGuesses(
        _ failed: Int64, ofAccount number: Int64, at now: TrustedTime
    ) throws(OperationalError) -> Bool
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

/// Deliveries that an endpoint lost because its share of the outbox was full.
package struct WebhookDrops: Sendable, Equatable {
    package var endpoint: String
    package var count: Int64
    /// When the last one was dropped, in whole Unix seconds.
    package var last: Int64

    package init(endpoint: String, count: Int64, last: Int64) {
        (self.endpoint, self.count, self.last) = (endpoint, count, last)
    }
}

/// Limits how much of the outbox an endpoint and an account may use. The bounds count the existing rows. The
/// outbox must not fill the disk while an endpoint is down for days, and no endpoint or account may use up
/// the room of another.
package struct WebhookShares: Sendable, Equatable {
    /// The most waiting deliveries of all endpoints, and the most deliveries that were given up.
    static let deliveries: Int64 = 100_000
    /// Seconds for which an account's events are counted.
    package static let window: Int64 = 600
    /// The most events of an account in that time that endpoints receive: this many about its security, and
    /// this many others.
    package static let accountEvents: Int64 = 100

    /// The most waiting deliveries to one endpoint, and the most that were given up.
    package let endpoint: Int64

    package init(among endpoints: Int) {
        endpoint = WebhookShares.deliveries / Int64(max(endpoints, 1))
    }

    /// The number of waiting deliveries to one endpoint below which a delivery of that urgency is added. The
    /// last eighth is not available to routine events.
    package func endpoint(for urgency: WebhookUrgency) -> Int64 {
        urgency == .routine ? endpoint - endpoint / 8 : endpoint
    }

    /// The most waiting deliveries to one endpoint that belong to one account.
    package var account: Int64 { endpoint / 100 }
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
