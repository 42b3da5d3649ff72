import CountersignWire

/// One caller's work. Whoever takes it out of the queue, under the queue's lock, calls one of the two closures, once:
/// that is what keeps a continuation from being resumed twice, or never.
struct HashingJob: Sendable {
    let ticket: Ticket
    /// Does the work; what it returns hands the result over.
    let perform: @Sendable () -> @Sendable () -> Void
    let refuse: @Sendable (Refusal) -> Void
    /// When it joined the queue: nanoseconds of the pool's clock. Set by the queue.
    var joined: UInt64 = 0

    init(
        ticket: Ticket, perform: @escaping @Sendable () -> @Sendable () -> Void,
        refuse: @escaping @Sendable (Refusal) -> Void
    ) {
        self.ticket = ticket
        self.perform = perform
        self.refuse = refuse
    }
}
