import CountersignWire

extension UpstreamPool {
    /// Sends the exchange's request to the upstream, and its answer back. Throws while no part of an answer was sent;
    /// what goes wrong after that cuts the client's connection, for there is no other way left to say it.
    package func forward(_ exchange: any Exchange, _ forwarding: Forwarding) async throws(Refusal) {
        guard let connection = exchange as? Connection else {
            throw Refusal(.unavailable, "this exchange cannot be forwarded")
        }
        let relay = Relay(connection: connection, pool: self, forwarding: forwarding)
        if let stream = takeIdle() {
            do throws(Relay.Failure) {
                return try await relay.run(on: stream)
            } catch {
                stream.close()
                guard case .upstream(.closed) = error, relay.maySendAgain else { throw refusal(for: error) }
                // It had died at rest. What is idempotent, and still in hand, goes once more, on a new connection.
            }
        }
        let stream = try await connect()
        do throws(Relay.Failure) {
            try await relay.run(on: stream)
        } catch {
            stream.close()
            throw refusal(for: error)
        }
    }

    private func refusal(for failure: Relay.Failure) -> Refusal {
        switch failure {
        case .refused(let refusal): refusal
        case .malformed(let detail): Refusal(.upstreamFailed, "\(target.host)'s answer: \(detail)")
        case .upstream(.timedOut): Refusal(.upstreamTimeout, "\(target.host) did not answer in time")
        case .upstream: Refusal(.upstreamFailed, "\(target.host) closed the connection without an answer")
        }
    }
}
