/// Why a cryptographic operation gives no result.
package enum SealError: Error, Sendable, Hashable, CustomStringConvertible {
    /// libsodium could not be initialized.
    case unready
    /// The memory for Argon2id could not be allocated.
    case outOfMemory
    /// A result in the group ristretto255, or a number modulo its order, is zero or the identity. By chance
    /// this has negligible probability; it means that the memory or the library is faulty.
    case impossible
    /// The value was sealed under another key or for another purpose, or was altered. The reader cannot tell
    /// which.
    case notOpened
    /// A key cannot be used. `expected` states what was expected, without any of the key's bytes.
    case unusableKey(expected: String)

    package var description: String {
        switch self {
        case .unready: "unready"
        case .outOfMemory: "outOfMemory"
        case .impossible: "impossible"
        case .notOpened: "notOpened"
        case .unusableKey(let expected): "expected \(expected)"
        }
    }
}
