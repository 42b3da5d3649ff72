import CountersignSeal

/// Where an older version of the program left credentials: what may be read there and erased, and nothing else.
package protocol RememberedCredentials: Sendable {
    /// What is there, in the order in which it is to be moved.
    func read() -> Reading<[Remain]>

    /// Nothing is left of it there, durably.
    func erase(_ remain: Remain) throws(VaultProblem)
}

/// One thing that was left.
package struct Remain: Sendable {
    package enum Fate: Sendable {
        case move(ItemContents, to: ItemName)
        /// Is not to be kept by anybody.
        case discard
        /// Cannot be moved as it is, and may be needed.
        case leave(String)
    }

    /// Where it is at the source: a key of UserDefaults, an account of a keychain's service.
    package let key: String
    package let fate: Fate

    package init(key: String, fate: Fate) {
        self.key = key
        self.fate = fate
    }
}
