import CountersignWire

/// Which of a request's fields, by index into `Request.fields`, a signature covers.
package enum FieldSet: Sendable, Equatable {
    /// The scheme signs no fields, so none can be held back for want of a signature: legacy schemes.
    case everything
    case only(FieldMask)

    /// As many fields as a mask can name.
    package static let limit = FieldMask.limit

    package func contains(_ index: Int) -> Bool {
        switch self {
        case .everything: true
        case .only(let mask): mask.contains(index)
        }
    }
}
