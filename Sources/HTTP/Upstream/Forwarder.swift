import CountersignWire

extension UpstreamPool {
    /// Sends the exchange's request to the upstream, and its answer back. Throws while no part of an answer was sent;
    /// what goes wrong after that cuts the client's connection, for there is no other way left to say it.
    package func forward(_ exchange: any Exchange, _ forwarding: consuming Forwarding) async throws(Refusal) {
        guard let connection = exchange as? Connection else {
            throw Refusal(.unavailable, "this exchange cannot be forwarded")
        }
        let party = party(of: connection, as: forwarding.caller)
        let relay = Relay(connection: connection, pool: self, party: party, forwarding: forwarding)
        defer { relay.releaseFirstPart() }
        // A head alone is cheap: of a body that streams, the client has to send a part before it holds a
        // connection.
        if !connection.request.isBodyWhole { try await relay.receiveFirstPart() }
        var taken: UpstreamConnection
        if let idle = takeIdle(for: party) {
            taken = idle
        } else {
            taken = try await takeAnother(for: party)
        }
        while true {
            do throws(Relay.Failure) {
                try await relay.run(on: taken.stream)
                return finish(taken, of: party, isReusable: relay.isReusable)
            } catch {
                guard taken.hasServed, relay.maySendAgain(after: error) else {
                    close(taken, of: party)
                    throw refusal(for: error, of: relay)
                }
                // It died while it was idle. The request goes out on a new connection, which has not served.
                taken = try await replace(taken, of: party)
            }
        }
    }

    private func finish(_ connection: UpstreamConnection, of party: UpstreamParty, isReusable: Bool) {
        if isReusable { giveBack(connection, of: party) } else { close(connection, of: party) }
    }

    private func refusal(for failure: Relay.Failure, of relay: Relay) -> Refusal {
        if case .refused(let refusal) = failure { return refusal }
        // The upstream may have read enough of the request to act on.
        if !relay.hasSentNothing { relay.forwarding.observer?.mayBeDone() }
        return switch failure {
        case .refused(let refusal): refusal
        case .malformed(let detail): Refusal(.upstreamFailed, "\(target.host)'s answer: \(detail)")
        case .upstream(.timedOut): Refusal(.upstreamTimeout, "\(target.host) did not answer in time")
        case .upstream: Refusal(.upstreamFailed, "\(target.host) closed the connection without an answer")
        }
    }
}
