import CountersignTransport

/// The right to send one upload later and without a signature, by any HTTP stack: for transfers that go on
/// while the app does not run. ``CountersignClient/uploadTicket(for:expiresIn:)`` asks for one.
///
/// It lets exactly one request in: this method, URL and body, once, before it runs out, and while the session
/// lives that asked for it. Whoever has the fields can send that request; they are a secret, which
/// ``description`` does not show.
public struct UploadTicket: Sendable, CustomStringConvertible, CustomReflectable {
    /// Of the upload.
    public let method: APIMethod
    /// Whole, percent-encoded, as the ticket is bound to it.
    public let url: String
    /// What the upload is sent with, and the ticket among it. `Host` and `Content-Length` follow from the
    /// URL and the body; other fields may be added, and do not reach the backend.
    public let fields: [HeaderField]
    /// Bytes of the body; another length is refused.
    public let length: Int
    /// From then on it is refused: whole Unix seconds.
    public let expires: Int64

    /// Without the ticket itself.
    public var description: String { "upload ticket for \(method) \(url), \(length) bytes, until \(expires)" }

    /// The same, for debuggers.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
