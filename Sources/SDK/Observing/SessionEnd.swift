/// How a session ended, by the authority's own signed word; ``How-swift.enum/deviceKeyLost`` alone is this
/// device's.
public struct SessionEnd: Sendable, Hashable {
    /// What ended it.
    public enum How: Sendable, Hashable {
        /// It was not used for too long.
        case expired
        /// By a login that took its place, on a device of this class (`phone`, `desktop`…) where that was told.
        case replaced(by: String?)
        /// By its own device, or by another of the account's.
        case signedOut
        /// By an administrator.
        case revoked
        /// A key that had been renewed was used again: somebody has a copy of what this device keeps, or it was put back to an
        /// older state.
        case reused
        /// From another device, or with a reset code.
        case passwordChanged
        /// The account is locked or removed.
        case disabled
        /// The server was restored from a backup.
        case restored
        /// This device's hardware does not have its keys any more: a TPM that was cleared, a vault that was
        /// copied from another device. The session has ended here, and needs a login; at the server it is
        /// listed until it is ended or not used for too long.
        case deviceKeyLost
        /// In the server's word, or without one.
        case other(String)
    }

    /// What ended it.
    public let how: How
    /// When, in whole Unix seconds; nil where that was not told.
    public let at: Int64?

    /// From its parts.
    public init(_ how: How, at: Int64? = nil) {
        self.how = how
        self.at = at
    }
}
