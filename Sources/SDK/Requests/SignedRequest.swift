import CountersignTransport

/// A request with its signature, for any HTTP stack: sent as it stands, once, within a minute.
///
/// Whatever is changed after the signing (a field added, the query spelled in another way) makes the server refuse it. What comes
/// back is for the sender to read; ``CountersignClient/confirmSession()`` mends a token that ran out, and the request is then signed anew.
public struct SignedRequest: Sendable {
    /// In the case in which it was signed.
    public let method: APIMethod
    /// Whole, percent-encoded as it was signed.
    public let url: String
    /// Those of the request and those of its signature. `Host` and `Content-Length` follow from the URL and the body.
    public let fields: [HeaderField]
    /// What it carries; its digest is signed.
    public let body: APIRequest.Body

    /// From its parts: who signs in another way, for a server of another kind, says the same.
    public init(method: APIMethod, url: String, fields: [HeaderField], body: APIRequest.Body) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }
}
