import CountersignClient
import CountersignTransport
import CountersignWire

/// The way to a profile's server.
struct ServerLine: Sendable {
    /// How long an exchange may take.
    enum Patience: Sendable, Equatable {
        /// As long as something comes: a minute without a byte, either way, is no connection any more.
        case whileItMoves
        /// All of it, whatever comes.
        case within(Duration)
    }

    let origin: Origin
    private let carrier: any Carrier

    init(_ profile: Profile, _ patience: Patience) throws(Fault) {
        let (origin, _) = try Origin.split(profile.url)
        var options = TransportOptions()
        if case .within(let duration) = patience { options.totalTimeout = .within(duration) }
        options.authorities = try profile.authorities()
        let trust = try profile.trust(for: origin)
        do throws(TransportError) {
            carrier = try HTTPTransport(trust: trust, options: options)
        } catch {
            throw error.fault(origin)
        }
        self.origin = origin
    }

    /// Sends `draft` in the bytes that were signed, and waits for the head of the answer.
    func send(_ draft: Draft) async throws(TransportError) -> IncomingResponse {
        try await carrier.send(OutgoingRequest(draft, to: origin))
    }
}

extension OutgoingRequest {
    init(_ draft: Draft, to origin: Origin) {
        self.init(
            draft.method, origin, String(decoding: draft.target, as: UTF8.self),
            fields: draft.fields.map { HTTPField($0.name, bytes: $0.value) },
            body: draft.body.isEmpty ? .none : .bytes(draft.body))
        authority = draft.authority
    }
}

extension TransportError {
    /// Whom it concerns and what went wrong, for people.
    func fault(_ origin: Origin) -> Fault {
        switch (cause, fate) {
        case (.machine(let detail), .notSent): Fault(.failed, detail)
        case (.malformedRequest(let flaw), .notSent): Fault(.usage, "the request cannot be sent: \(flaw)")
        case (.answerTooLarge, _): Fault(.failed, "\(cause)")
        case (.untrusted(let verdict), .notSent):
            Fault(.unreachable, "\(origin): not trusted, nothing was sent: \(verdict)")
        case (.tls(let detail), .notSent):
            Fault(.unreachable, "\(origin): no TLS connection, nothing was sent: \(detail)")
        case (_, .notSent): Fault(.unreachable, "\(origin): cannot be reached: \(cause)")
        case (_, .outcomeUnknown):
            Fault(.unreachable, "\(origin): no answer; whether it was received is not known: \(cause)")
        case (_, .brokenOff): Fault(.unreachable, "\(origin): the answer broke off: \(cause)")
        }
    }
}
