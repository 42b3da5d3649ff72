// Former public names, too general for an app that imports this module. The next version removes them.

/// The former name of ``VaultMigration``.
@available(*, deprecated, renamed: "VaultMigration")
public typealias Migration = VaultMigration

/// The former name of ``UserPresence``.
@available(*, deprecated, renamed: "UserPresence")
public typealias Presence = UserPresence

/// The former name of ``LegacyDefaultsItems``.
@available(*, deprecated, renamed: "LegacyDefaultsItems")
public typealias DefaultsRemains = LegacyDefaultsItems

/// The former name of ``RememberedCredentialSource``.
@available(*, deprecated, renamed: "RememberedCredentialSource")
public typealias RememberedCredentials = RememberedCredentialSource

/// The former name of ``VaultError``.
@available(*, deprecated, renamed: "VaultError")
public typealias VaultProblem = VaultError

/// The former name of ``VaultReadResult``.
@available(*, deprecated, renamed: "VaultReadResult")
public typealias Reading<Value: Sendable> = VaultReadResult<Value>

extension VaultReadResult {
    /// The former name of ``get()``.
    @available(*, deprecated, renamed: "get()")
    public func certain() throws(VaultError) -> Value? { try get() }
}
