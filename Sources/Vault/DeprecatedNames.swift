// Former public names, too general for an app that imports this module, and former argument labels. The next
// version removes them. Where a trailing closure fits both forms, `@_disfavoredOverload` selects the present
// one.

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

extension ItemName {
    /// The former name of ``longest``.
    @available(*, deprecated, renamed: "longest")
    public static var most: Int { longest }
}

extension LegacyDefaultsItems {
    /// The former name of ``PasswordEncoding``.
    @available(*, deprecated, renamed: "PasswordEncoding")
    public typealias Spelling = PasswordEncoding

    /// The former name of ``credentials(encodedAs:service:)``.
    @available(*, deprecated, renamed: "credentials(encodedAs:service:)")
    public func remains(spelled spelling: PasswordEncoding, service: String) throws(VaultError)
        -> [RememberedCredential]
    {
        try credentials(encodedAs: spelling, service: service)
    }
}

extension Vault {
    /// The former form of ``withLease(within:perform:)``.
    @available(*, deprecated, renamed: "withLease(within:perform:)")
    @_disfavoredOverload
    @discardableResult
    public func withLease<Value>(
        within patience: Duration = .seconds(30), _ body: () async throws -> Value
    ) async throws -> Value {
        try await withLease(within: patience, perform: body)
    }
}
