/// Why a vault does not do what was asked. The texts are for people and name no secret.
public enum VaultProblem: Error, Sendable, Equatable {
    /// The service or the account is no name that every back end can keep.
    case badName(String)
    /// What guards the vault is closed, and opens again: a locked keyring, a device before its first unlock, no passphrase.
    case locked(String)
    /// The item is not in the version that was expected: somebody else wrote or removed it. Nothing was done.
    case changed
    /// Anything else. Nothing is known of the item, so nothing may be concluded from this.
    case failed(String)
}

/// What is there. That there is nothing, and that it cannot be told, are different answers: on the first a user is asked to
/// sign in, on the others a session that lives must not be thrown away.
public enum Reading<Value: Sendable>: Sendable {
    /// It is there.
    case value(Value)
    /// It is certainly not there.
    case absent
    /// It cannot be read now and can be later; for people, why.
    case locked(String)
    /// It cannot be told; for people, why.
    case failed(String)

    /// What a problem says about what was to be read.
    package init(_ problem: VaultProblem) {
        switch problem {
        case .locked(let detail): self = .locked(detail)
        case .failed(let detail), .badName(let detail): self = .failed(detail)
        case .changed: self = .failed("changed while it was read")
        }
    }

    /// The value, nil where there is certainly none; everything else is thrown.
    public func certain() throws(VaultProblem) -> Value? {
        switch self {
        case .value(let value): return value
        case .absent: return nil
        case .locked(let detail): throw .locked(detail)
        case .failed(let detail): throw .failed(detail)
        }
    }

    /// The same answer about what `part` finds in the value.
    package func flatMap<Part: Sendable>(_ part: (Value) -> Reading<Part>) -> Reading<Part> {
        switch self {
        case .value(let value): part(value)
        case .absent: .absent
        case .locked(let detail): .locked(detail)
        case .failed(let detail): .failed(detail)
        }
    }
}
