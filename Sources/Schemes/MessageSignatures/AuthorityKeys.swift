/// The public keys under which a client accepts the authority's own answers: the one that it was built with
/// and, if it knows that, the next one. Both have the id `authority`.
package struct AuthorityKeys: Sendable {
    /// Nil if the authority's key is not known, or once its successor is in use.
    package let current: SigningKey?
    package let next: SigningKey?

    package init(current: SigningKey?, next: SigningKey? = nil) {
        (self.current, self.next) = (current, next)
    }

    package static let unknown = AuthorityKeys(current: nil)

    package var areUnknown: Bool { current == nil && next == nil }

    /// The next key alone: for a client that has seen an answer under it.
    package var withoutFormer: AuthorityKeys { AuthorityKeys(current: nil, next: next) }
}
