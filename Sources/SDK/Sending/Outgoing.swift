import CountersignClient
import CountersignTransport
import CountersignWire

extension OutgoingRequest {
    /// A draft as a carrier sends it: in the very bytes that were signed. `body` stands for what a draft only has the digest of.
    init(_ draft: Draft, to origin: Origin, body: RequestBody) {
        self.init(draft.method, origin, "/", fields: draft.fields.map(HeaderField.init), body: body)
        target = draft.target
        authority = draft.authority
    }
}

extension HeaderField {
    init(_ field: Draft.Field) { self.init(field.name, bytes: field.value) }
}

extension Draft.Field {
    init(_ field: HeaderField) {
        self.init(field.name, "")
        value = field.value
    }
}

extension TransportProblem {
    init(_ error: TransportError) {
        let fate: Fate =
            switch error.fate {
            case .notSent: .notSent
            case .outcomeUnknown: .notKnown
            case .brokenOff: .brokenOff
            }
        self.init(fate, error.description, underlying: error)
    }
}
