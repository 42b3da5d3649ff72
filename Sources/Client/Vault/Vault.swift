import CountersignSeal

/// Where a device keeps what must survive a restart and must not be seen. One vault holds one text of bytes, and everything in
/// it changes together: there is no moment at which half of a change can be read.
package protocol Vault: Sendable {
    /// What is there. That nothing is there, and that it cannot be told, are two answers: on the first a user is asked to sign
    /// in, on the second a session that lives must not be thrown away.
    func read() -> VaultReading

    /// Replaces it. Durable once it returns, and whole at every moment.
    func write(_ contents: Secret) throws(VaultProblem)

    /// Nothing is left of it.
    func erase() throws(VaultProblem)

    /// Waits until no other holder, in this process or another, changes the vault, and keeps it so until ``VaultLease/release()``
    /// or the holder's end. A lease that whoever died held is free.
    nonisolated(nonsending) func lease() async throws(VaultProblem) -> any VaultLease
}

package protocol VaultLease: Sendable {
    func release()
}

package enum VaultReading: Sendable {
    case value(Secret)
    case absent
    case unreadable(VaultProblem)
}

/// Why a vault does not do what was asked; for people.
package struct VaultProblem: Error, Sendable, Equatable {
    package var detail: String

    package init(_ detail: String) { self.detail = detail }
}
