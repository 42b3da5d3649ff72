import CountersignTransport
import CountersignWire

/// The way to a profile's server for calls that are signed here: with schemes other than the SDK's own.
struct ServerLine: Sendable {
    private let origin: Origin
    private let carrier: any Carrier

    init(_ profile: Profile) throws(Fault) {
        (origin, _) = try Origin.split(profile.url)
        var options = TransportOptions()
        options.authorities = try profile.authorities()
        let trust = try profile.trust(for: origin)
        do throws(TransportError) {
            carrier = try HTTPTransport(trust: trust, options: options)
        } catch {
            throw error.fault(origin)
        }
    }

    /// Sends `draft` in the bytes that were signed, and shows the answer as it comes.
    func exchange(_ draft: Draft, _ answer: Answer) async throws(Fault) {
        do {
            let incoming = try await carrier.send(OutgoingRequest(draft, to: origin))
            try answer.take(incoming.status, incoming.fields)
            for try await piece in incoming.body { try answer.take(body: piece) }
        } catch let error as TransportError {
            throw error.fault(origin)
        } catch {
            throw (error as? Fault) ?? Fault(.failed, "\(error)")
        }
    }
}

extension Draft.Field {
    init(_ field: HeaderField) {
        self.init(field.name, "")
        value = field.value
    }
}

extension OutgoingRequest {
    init(_ draft: Draft, to origin: Origin) {
        self.init(
            draft.method, origin, String(decoding: draft.target, as: UTF8.self),
            fields: draft.fields.map { HeaderField($0.name, bytes: $0.value) },
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
