/// Which of a request's fields, by index into `Request.fields`, a signature covers.
package enum FieldSet: Sendable, Equatable {
    /// The scheme signs no fields, so none can be held back for want of a signature: legacy schemes.
    case everything
    /// Bit `n` stands for `request.fields[n]`.
    case only(UInt128)

    /// As many fields as a bit mask can name.
    package static let limit = UInt128.bitWidth

    package func contains(_ index: Int) -> Bool {
        switch self {
        case .everything: true
        case .only(let mask): index < FieldSet.limit && mask & (1 << UInt128(index)) != 0
        }
    }
}
