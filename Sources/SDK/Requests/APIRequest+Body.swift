import CountersignTransport

extension APIRequest {
    /// What a request carries. The kind says whether it can be sent again: after a refresh, a lost answer or a corrected clock.
    ///
    /// Each body's SHA-256 is signed with the request's head, so it has to be known before the first byte goes out.
    public enum Body: Sendable {
        /// No body.
        case none
        /// All of it, in memory.
        case bytes([UInt8])
        /// A file, read once for its digest and once for each copy that is sent. One that changes in between is refused by
        /// the server.
        case file(path: String)
        /// A stream that can be had anew; made once for its digest and once for each copy that is sent.
        case replayable(ReplayableBody)
        /// A stream that is gone once it was read, and is never sent twice. `sha256` is its digest, 32 bytes: who cannot
        /// tell it beforehand writes the stream to a file first. Its length has to be known, too.
        case once(OnceBody, sha256: [UInt8])
    }
}
