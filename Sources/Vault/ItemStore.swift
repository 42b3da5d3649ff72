import CountersignSeal

/// A place that keeps secrets by name: what a back end fulfils, and all that it decides. It knows nothing of versions and kinds;
/// those are ``Vault``'s, the same for all of them.
package protocol ItemStore: Sendable {
    /// Absent only where that is certain: a store that is closed, or answers strangely, says so instead.
    func find(_ name: ItemName) -> Reading<Secret>

    /// All of them, in no order. Fails where some may be hidden, rather than leave them out.
    func names() throws(VaultProblem) -> [ItemName]

    /// Adds or replaces. Durable once it returns; a crash leaves the old bytes or the new.
    func put(_ bytes: Secret, at name: ItemName) throws(VaultProblem)

    /// Nothing is left of it; one that is not there is well.
    func remove(_ name: ItemName) throws(VaultProblem)
}
