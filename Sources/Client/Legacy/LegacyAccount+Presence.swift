extension LegacyAccount {
    /// What a person's presence is needed for.
    package enum Lock: Sendable, Equatable {
        /// Nothing: whoever is signed in is at hand, or nobody is.
        case open
        /// To open the session, with the key of that name.
        case closed(String)
    }

    /// As last known here.
    package func lock() throws(LegacyProblem) -> Lock { lock(of: try known()) }

    /// As the vault has it now.
    package func lockNow() throws(LegacyProblem) -> Lock { lock(of: try reread()) }

    /// Whether the session that there is was opened with the key of that name.
    package func isOpen(with name: String) -> Bool { sealKey?.name == name }

    /// The key of the session that is kept, or nil where none seals it.
    package func keyName() throws(LegacyProblem) -> String? {
        switch try reread().form {
        case .plain: nil
        case .sealed: sealKey?.name
        case .locked(let name): name
        }
    }

    /// Opens the session and takes it up as ``resume()`` does, but for a stop, which stays. False where it is
    /// another key's by now.
    package func unlock(with key: LegacySealKey) async throws(LegacyProblem) -> Bool {
        sealKey = key
        guard lock(of: try reread()) == .open else { return false }
        _ = try await takeUp()
        return true
    }

    /// A key for the next login's session that is yet to be bound to presence; nil where there is one that
    /// will do.
    package func keyToBind() throws(LegacyProblem) -> LegacySealKey? {
        if nextKey != nil { return nil }
        return try reread().form == .sealed ? nil : LegacySealKey()
    }

    /// From now on the next login's session is sealed so.
    package func sealNext(under key: LegacySealKey) { nextKey = key }

    private func lock(of found: LegacyStore.Found) -> Lock {
        guard isLocked(found), case .locked(let name) = found.form else { return .open }
        return .closed(name)
    }
}

extension LegacyAccount {
    /// Whether nothing is kept here, sealed or not.
    package func isEmpty() throws(LegacyProblem) -> Bool { try reread().version == nil }
}
