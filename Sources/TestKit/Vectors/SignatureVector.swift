import CountersignTransport

/// A signed request with every intermediate, for a team that signs without this SDK: on another platform, in another language.
///
/// Made by an implementation of RFC 9421 that shares nothing with ours. Whoever computes ``stringToSign`` from the rest and
/// HMAC-SHA-256 of it under ``secret`` gets the signature in ``fields``. Source: RFC 9421 §2.5, §3.3.3; docs/protocol.md.
public struct SignatureVector: Sendable {
    /// What is special about it.
    public let name: String
    /// In the case in which it is signed.
    public let method: String
    /// `https` or `http`.
    public let scheme: String
    /// The `Host` field as it is sent; it is signed in lower case and without a default port.
    public let authority: String
    /// Path and query as they are sent.
    public let target: String
    /// All fields, those of the signature among them.
    public let fields: [HeaderField]
    /// What `Content-Digest` is of.
    public let body: [UInt8]
    /// The release key's id.
    public let keyID: String
    /// The key of the HMAC.
    public let secret: [UInt8]
    /// When it was signed, whole Unix seconds.
    public let created: Int64
    /// The signature base.
    public let stringToSign: String
}
