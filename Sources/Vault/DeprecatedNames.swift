// Former public names, too general for an app that imports this module. The next version removes them.

/// The former name of ``VaultMigration``.
@available(*, deprecated, renamed: "VaultMigration")
public typealias Migration = VaultMigration

/// The former name of ``UserPresence``.
@available(*, deprecated, renamed: "UserPresence")
public typealias Presence = UserPresence
