/// What an attack is called: lower-case words with hyphens, `replay-after-restart`.
package struct AttackName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    package let description: String

    package init(stringLiteral name: String) { description = name }

    /// As somebody typed it; whether there is such an attack is for the catalogue to say.
    package init(_ name: String) { description = name }
}

/// What a row is called: the scheme, and how it is served: `md5`, `md5+gateway`, `countersign-no-tls`.
package struct RowName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    package let description: String

    package init(stringLiteral name: String) { description = name }

    /// As somebody typed it.
    package init(_ name: String) { description = name }
}
