import Synchronization

/// How an attacker gets the victim's requests: by listening on a plain row; on a TLS row by interception,
/// under a certificate of an authority that the device trusts. Apps that pin another authority refuse it.
extension Stage {
    /// The exchanges during `act`, unchanged. Nil where the app refused the attacker's certificate: then
    /// ``appRefusesCertificate`` is the outcome. Throws where `act` failed for another reason.
    package func captureExchanges(while act: () async throws(VictimError) -> Void) async throws
        -> [RawExchange]?
    {
        if case .plain = row.transport {
            let tap = network.listen()
            let problem = await outcome(of: act)
            let exchanges = tap.stop().exchanges
            if let problem { throw LabError("the victim, while the attacker listens: \(problem)") }
            guard !exchanges.isEmpty else { throw LabError("the victim acted, and nothing passed") }
            noteExchanges(exchanges, action: "listens on the way")
            return exchanges
        }
        network.intercept { request, forward in try? forward(request) }
        let problem = await outcome(of: act)
        let seen = network.interception
        network.stopIntercepting()
        if await isCertificateRefusal(problem) { return nil }
        if let problem { throw LabError("the victim, with the attacker in the middle: \(problem)") }
        guard !seen.exchanges.isEmpty else {
            throw LabError("the victim acted, and nothing came to the man in the middle")
        }
        noteExchanges(seen.exchanges, action: "reads in the middle, under a certificate of its own authority")
        return seen.exchanges
    }

    /// The victim's request to `path`, which the server has not seen: the interception holds it, and the app
    /// gets no response. Nil where the app refused the attacker's certificate.
    package func interceptRequest(
        to path: String, while act: () async throws(VictimError) -> Void
    ) async throws -> RawRequest? {
        network.intercept { request, forward in request.path == path ? nil : try? forward(request) }
        let problem = await outcome(of: act)
        let seen = network.interception
        network.stopIntercepting()
        if await isCertificateRefusal(problem) { return nil }
        guard let request = seen.exchanges.map(\.request).first(where: { $0.path == path }) else {
            throw LabError(
                "nothing for \(path) came to the man in the middle: \(problem.map { "\($0)" } ?? "")")
        }
        guard problem != nil else { throw LabError("the app had an answer to a request that was held back") }
        note(.victim, action: "sends a request, which the attacker keeps to himself", showing: request.shown)
        return request
    }

    /// The outcome of an attack that ended at the certificate, with the counts of the interception as
    /// evidence.
    package var appRefusesCertificate: AttackOutcome {
        let seen = network.interception
        let why = Set(seen.abortedHandshakes).sorted().joined(separator: ", ")
        return .failed(
            "the app refuses the attacker's certificate, and no request was read; connections: "
                + "\(seen.connections) (\(why))"
        )
    }

    /// Whether the app refused the certificate before it sent a request. Waits for the interception's log,
    /// since the victim may know of the failed handshake first.
    package func isCertificateRefusal(_ problem: VictimError?) async -> Bool {
        guard case .serverNotTrusted(let why) = problem else { return false }
        for _ in 0..<50 where network.interception.abortedHandshakes.isEmpty {
            try? await Task.sleep(for: .milliseconds(10))
        }
        guard network.interception.requests == 0, !network.interception.abortedHandshakes.isEmpty else {
            return false
        }
        note(.victim, action: "breaks off the handshake: \(why)")
        return true
    }

    private func outcome(of act: () async throws(VictimError) -> Void) async -> VictimError? {
        do {
            try await act()
            return nil
        } catch {
            return error
        }
    }

    private func noteExchanges(_ exchanges: [RawExchange], action: String) {
        for exchange in exchanges.prefix(3) {
            note(.victim, action: "sends", showing: exchange.request.shown)
            if let response = exchange.response { note(.server, action: "answers", showing: response.shown) }
        }
        note(.attacker, action: "\(action): \(exchanges.count) requests")
    }
}
