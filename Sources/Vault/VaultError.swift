/// Why a vault does not do what was asked. The texts are for people and name no secret.
public enum VaultError: Error, Sendable, Equatable {
    /// The service or the account is no name that every back end can keep.
    case badName(String)
    /// What guards the vault is closed, and opens again: a device before its first unlock, no passphrase.
    case locked(String)
    /// The item does not have the expected version: another process wrote or removed it. Nothing was changed.
    case changed
    /// Anything else. Nothing is known of the item, so nothing may be concluded from this.
    case failed(String)
}

/// The result of a read. "Absent" and "unknown" are different results: after the first the user is asked to
/// sign in; after the others a session that may be alive must not be discarded.
public enum VaultReadResult<Value: Sendable>: Sendable {
    /// It is there.
    case value(Value)
    /// It is certainly not there.
    case absent
    /// It cannot be read now and can be later; for people, why.
    case locked(String)
    /// It cannot be told; for people, why.
    case failed(String)

    /// What a problem says about what was to be read.
    package init(_ problem: VaultError) {
        switch problem {
        case .locked(let detail): self = .locked(detail)
        case .failed(let detail), .badName(let detail): self = .failed(detail)
        case .changed: self = .failed("changed while it was read")
        }
    }

    /// The value, nil where there is certainly none; everything else is thrown.
    public func get() throws(VaultError) -> Value? {
        switch self {
        case .value(let value): return value
        case .absent: return nil
        case .locked(let detail): throw .locked(detail)
        case .failed(let detail): throw .failed(detail)
        }
    }

    /// The same answer about what `part` finds in the value.
    package func flatMap<Part: Sendable>(_ part: (Value) -> VaultReadResult<Part>) -> VaultReadResult<Part> {
        switch self {
        case .value(let value): part(value)
        case .absent: .absent
        case .locked(let detail): .locked(detail)
        case .failed(let detail): .failed(detail)
        }
    }
}
