import CountersignGate
import CountersignWire

extension Deployment {
    /// Throws while another clock contradicts this one. For what makes something that expires, or ends
    /// something by date: it would expire or end at a wrong time. `what` is the beginning of the message.
    /// Source: docs/decisions/0100-trusted-time.md.
    package func requireClock(for what: String) throws(OperationalError) {
        guard let contradiction = clock.contradiction else { return }
        throw OperationalError(
            .failed,
            message: "\(what): \(contradiction), and nothing is made now that ends by date; set the clock, "
                + "or compare it with another one and run `countersign replay confirm-clock --yes`")
    }
}
