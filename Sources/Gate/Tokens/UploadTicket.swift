import CountersignSchemes
import CountersignWire

/// What the store finds an upload ticket by: 16 random bytes. Not a secret; a ticket cannot be made from it.
package struct UploadTicketID: Sendable, Hashable {
    package static let count = 16

    package let bytes: [UInt8]

    /// Nil where `bytes` are not 16.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == UploadTicketID.count else { return nil }
        self.bytes = bytes
    }
}

/// The one request that a ticket is for.
package struct Upload: Sendable, Equatable {
    /// Methods that send a body to be kept.
    package static let methods: [StaticString] = ["PUT", "POST", "PATCH"]

    package var method: [UInt8]
    /// The host that it goes to, in lower case, as the request for the ticket names it.
    package var authority: [UInt8]
    /// The request target in origin form, to the byte.
    package var target: [UInt8]
    /// The `Content-Type` that it has; nil where that is not passed on.
    package var contentType: [UInt8]?
    /// Bytes of the body.
    package var length: Int
    /// SHA-256 of the body, 32 bytes.
    package var sha256: [UInt8]

    package init(
        method: [UInt8], authority: [UInt8], target: [UInt8], contentType: [UInt8]?, length: Int,
        sha256: [UInt8]
    ) {
        self.method = method
        self.authority = authority
        self.target = target
        self.contentType = contentType
        self.length = length
        self.sha256 = sha256
    }

    /// Why the head of `request` is not that of this upload; nil where it is.
    func difference(from request: Request) -> String? {
        let head = request.head.span
        guard head.extracting(request.method.range).matches(method.span) else { return "the method" }
        guard request.authority.range.map({ ASCII.lowercased(head[$0]) }) == authority else {
            return "the host"
        }
        guard head.extracting(request.target.range).matches(target.span), request.absoluteAuthority.isEmpty
        else {
            return "the target"
        }
        switch request.framing {
        case .none: guard length == 0 else { return "the length of the body" }
        case .length(let announced): guard announced == length else { return "the length of the body" }
        case .chunked: return "the length of the body, which is not said"
        }
        guard let contentType else { return nil }
        guard let sent = request.value(of: FieldName.contentType),
            head.extracting(sent.range).matches(contentType.span)
        else { return "the content type" }
        return nil
    }
}

/// The right to send one upload without a signature, as the store keeps it. Source: docs/protocol.md, "Upload
/// tickets".
package struct UploadTicket: Sendable, Equatable {
    /// How often it may be tried where the backend did not get the whole upload.
    package static let mostAttempts = 16

    package var id: UploadTicketID
    /// The session that asked for it, and its account's row.
    package var session: SessionID
    package var account: Int64
    /// The release that asked for it.
    package var release: KeyID
    package var upload: Upload
    /// Whole Unix seconds.
    package var created: Int64
    /// From then on it is refused: whole Unix seconds.
    package var expires: Int64
    /// When it was claimed, whole Unix seconds; nil while it may be used.
    package var claimed: Int64?
    /// How often it was claimed.
    package var attempts: Int

    package init(
        id: UploadTicketID, session: SessionID, account: Int64, release: KeyID, upload: Upload,
        created: Int64,
        expires: Int64, claimed: Int64? = nil, attempts: Int = 0
    ) {
        self.id = id
        self.session = session
        self.account = account
        self.release = release
        self.upload = upload
        self.created = created
        self.expires = expires
        self.claimed = claimed
        self.attempts = attempts
    }

    /// Refuses `request` where its head is not that of the upload.
    func check(_ request: Request) throws(Refusal) {
        guard let difference = upload.difference(from: request) else { return }
        throw Refusal(.badTicket, "\(difference) is not what the upload ticket was issued for")
    }
}
