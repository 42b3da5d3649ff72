import CountersignGate
import CountersignSeal
import CountersignWire

/// An upload ticket's token: `u_` and 43 characters of base64url, of the ticket's id and 16 bytes derived
/// from it with a sealed key. Made-up tokens are therefore rejected without reading the store, and the
/// store, which has only the id, does not reveal a token. Source: docs/protocol.md, "Upload tickets".
package struct UploadTicketToken: Sendable {
    private static let prefix: StaticString = "u_"
    private static let length = 45

    package let id: UploadTicketID
    private let tag: Secret

    /// Nil unless `text` is the canonical encoding of a ticket; ``isIssued(under:)`` tells whether this
    /// deployment issued it.
    package init?(_ text: Span<UInt8>) {
        guard text.count == UploadTicketToken.length,
            text.extracting(0..<2).matches(UploadTicketToken.prefix),
            let bytes = Base64.decode(text.extracting(2...), as: .url),
            bytes.count == 2 * UploadTicketID.count,
            let id = UploadTicketID(Array(bytes[..<UploadTicketID.count]))
        else { return nil }
        self.id = id
        tag = Secret(copying: bytes.span.extracting(UploadTicketID.count...))
    }

    init(_ id: UploadTicketID, under key: UploadTicketKey) {
        self.id = id
        tag = key.tag(of: id)
    }

    package func isIssued(under key: UploadTicketKey) -> Bool {
        let expected = key.tag(of: id)
        return tag.withExposedBytes { sent in
            expected.withExposedBytes { ConstantTime.equals(sent, $0) == .equal }
        }
    }

    /// The token's text, a secret: only the answer that hands it out contains it.
    package var text: String {
        let bytes = Secret(joining: [Secret(copying: id.bytes.span), tag])
        return "\(UploadTicketToken.prefix)" + bytes.withExposedBytes { Base64.encode($0, as: .url) }
    }
}

/// The key that upload tickets are derived with: that of bearer tokens, with a label of its own that no
/// label of theirs begins with.
package struct UploadTicketKey: Sendable {
    private let key: HMACSHA256

    init(_ key: HMACSHA256) { self.key = key }

    fileprivate func tag(of id: UploadTicketID) -> Secret {
        let message = Array("countersign/1 upload ticket".utf8) + [0] + id.bytes
        var digest = key.authenticate(message.span)
        return Secret(taking: &digest).part(0..<16)
    }
}
