import CountersignSchemes
import CountersignWire

/// The id by which the store finds an upload ticket: 16 random bytes. Not a secret; a ticket cannot be
/// derived from it.
package struct UploadTicketID: Sendable, Hashable {
    package static let count = 16

    package let bytes: [UInt8]

    /// Nil unless there are 16 `bytes`.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == UploadTicketID.count else { return nil }
        self.bytes = bytes
    }
}

/// The one request that a ticket is for.
package struct UploadDescription: Sendable, Equatable {
    /// The methods of an upload.
    package static let methods: [StaticString] = ["PUT", "POST", "PATCH"]

    package var method: [UInt8]
    /// The host of the upload in lower case, as the request for the ticket names it.
    package var authority: [UInt8]
    /// The request target in origin form, compared byte for byte.
    package var target: [UInt8]
    /// The `Content-Type` of the upload; nil if the field is not forwarded.
    package var contentType: [UInt8]?
    /// Length of the body in bytes.
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

    /// The part of the head of `request` that differs from this upload; nil if none does.
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
package struct UploadTicketRecord: Sendable, Equatable {
    /// How often the upload may be tried if the backend did not receive all of it.
    package static let mostAttempts = 16

    package var id: UploadTicketID
    /// The session that requested the ticket, and its account's row.
    package var session: SessionID
    package var account: Int64
    /// The release that requested the ticket.
    package var release: KeyID
    package var upload: UploadDescription
    /// Whole Unix seconds.
    package var created: Int64
    /// When the ticket expires; whole Unix seconds.
    package var expires: Int64
    /// When the ticket was claimed, in whole Unix seconds; nil while it may be used.
    package var claimed: Int64?
    /// How often the ticket was claimed.
    package var attempts: Int

    package init(
        id: UploadTicketID, session: SessionID, account: Int64, release: KeyID, upload: UploadDescription,
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

    /// Refuses `request` if its head differs from the upload.
    func check(_ request: Request) throws(Refusal) {
        guard let difference = upload.difference(from: request) else { return }
        throw Refusal(.badTicket, detail: "\(difference) is not what the upload ticket was issued for")
    }
}
