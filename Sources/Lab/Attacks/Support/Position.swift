import Synchronization

/// How an attacker comes by the victim's requests: on a plain row he listens. On a TLS row he has to be in the middle, under a certificate
/// of an authority that the device trusts, and apps that pin another one refuse him.
extension Stage {
    /// What passed while the victim did something, unharmed. Nil where the app refused to talk to the attacker: then ``appRefuses`` says
    /// how it went. Throws where the victim could not do it for another reason.
    package func captured(while act: () async throws(VictimProblem) -> Void) async throws -> [RawExchange]? {
        if case .plain = row.transport {
            let tap = network.listen()
            let problem = await outcome(of: act)
            let exchanges = tap.stop().exchanges
            if let problem { throw StageFault("the victim, while somebody listens: \(problem)") }
            guard !exchanges.isEmpty else { throw StageFault("the victim acted, and nothing passed") }
            show(exchanges, did: "listens on the way")
            return exchanges
        }
        network.interpose { request, forward in try? forward(request) }
        let problem = await outcome(of: act)
        let seen = network.interposed
        network.beHonest()
        if await isRefused(problem) { return nil }
        if let problem { throw StageFault("the victim, with somebody in the middle: \(problem)") }
        guard !seen.exchanges.isEmpty else {
            throw StageFault("the victim acted, and nothing came to the man in the middle")
        }
        show(seen.exchanges, did: "reads in the middle, under a certificate of his own authority")
        return seen.exchanges
    }

    /// The victim's request to `path`, which the server has not seen: the man in the middle keeps it, and the app gets no answer.
    /// Nil where the app refused to talk to him.
    package func held(
        _ path: String, while act: () async throws(VictimProblem) -> Void
    ) async throws -> RawRequest? {
        network.interpose { request, forward in request.path == path ? nil : try? forward(request) }
        let problem = await outcome(of: act)
        let seen = network.interposed
        network.beHonest()
        if await isRefused(problem) { return nil }
        guard let request = seen.exchanges.map(\.request).first(where: { $0.path == path }) else {
            throw StageFault("nothing for \(path) came to the man in the middle: \(problem.map { "\($0)" } ?? "")")
        }
        guard problem != nil else { throw StageFault("the app had an answer to a request that was held back") }
        note(.victim, "sends a request, which the attacker keeps to himself", showing: request.shown)
        return request
    }

    /// An attack that ended at the certificate: with the counts of who was in the middle as its evidence.
    package var appRefuses: Outcome {
        let seen = network.interposed
        let why = Set(seen.brokenOff).sorted().joined(separator: ", ")
        return .failed(
            "the app refuses the attacker's certificate, and no request was read; connections: \(seen.connections) (\(why))"
        )
    }

    /// Whether it ended at the certificate, without a request. The victim may know before the man in the middle does.
    package func isRefused(_ problem: VictimProblem?) async -> Bool {
        guard case .serverNotTrusted(let why) = problem else { return false }
        for _ in 0..<50 where network.interposed.brokenOff.isEmpty { try? await Task.sleep(for: .milliseconds(10)) }
        guard network.interposed.requests == 0, !network.interposed.brokenOff.isEmpty else { return false }
        note(.victim, "breaks off the handshake: \(why)")
        return true
    }

    private func outcome(of act: () async throws(VictimProblem) -> Void) async -> VictimProblem? {
        do throws(VictimProblem) {
            try await act()
            return nil
        } catch {
            return error
        }
    }

    private func show(_ exchanges: [RawExchange], did: String) {
        for exchange in exchanges.prefix(3) {
            note(.victim, "sends", showing: exchange.request.shown)
            if let response = exchange.response { note(.server, "answers", showing: response.shown) }
        }
        note(.attacker, "\(did): \(exchanges.count) requests")
    }
}
