/// A cryptographic library could not do what no input can forbid it. Ours, never the caller's.
package enum CryptographyFault: Error, Sendable, Equatable {
    /// libsodium could not be set up.
    case unready
    /// The memory that Argon2id was to fill could not be had.
    case outOfMemory
    /// A result in the group ristretto255, or a number modulo its order, that cannot be: zero, or the identity. Broken
    /// memory or a broken library; chance would take longer than the universe.
    case impossible
}
