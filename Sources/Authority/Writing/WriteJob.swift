import CountersignWire

/// One caller's change. Whoever takes it out of the queue, under the queue's lock, calls `end` once: that is what keeps a
/// continuation from being resumed twice, or never.
struct WriteJob: Sendable {
    let ticket: Ticket
    let change: @Sendable (any Store) throws(Fault) -> Void
    /// With nil once the change is durable, else with why it is not there.
    let end: @Sendable (Refusal?) -> Void
}
