import CountersignSeal

/// Where an older version of the program left credentials: what may be read there and erased, and nothing else. The calls may block
/// their thread.
public protocol RememberedCredentials: Sendable {
    /// What is there, in the order in which it is to be moved.
    func read() -> Reading<[RememberedCredential]>

    /// Nothing is left of it there, durably.
    func erase(_ remembered: RememberedCredential) throws(VaultProblem)
}

/// One thing that was left.
public struct RememberedCredential: Sendable {
    /// What is to become of it.
    public enum Fate: Sendable {
        /// The vault keeps it, under a name.
        case move(ItemContents, to: ItemName)
        /// Is not to be kept by anybody.
        case discard
        /// Cannot be moved as it is, and may be needed; for people, why.
        case leave(String)
    }

    /// Where it is at the source: a key of UserDefaults, an account of a keychain's service.
    public let key: String
    /// What is to become of it.
    public let fate: Fate

    /// As the source found it.
    public init(key: String, fate: Fate) {
        self.key = key
        self.fate = fate
    }
}
