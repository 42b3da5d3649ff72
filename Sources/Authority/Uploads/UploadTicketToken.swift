import CountersignGate
import CountersignSeal
import CountersignWire

/// An upload ticket as it is sent: `u_` and 43 characters of base64url, of the ticket's id and 16 bytes
/// derived from it under a sealed key. So a text that is made up is told from a ticket in memory, and the
/// store, which has the id alone, tells nobody a ticket. Source: docs/protocol.md, "Upload tickets".
package struct UploadTicketToken: Sendable {
    private static let prefix: StaticString = "u_"
    private static let length = 45

    package let id: UploadTicketID
    private let tag: Secret

    /// Nil for anything but the one spelling of a ticket. Whether it is one of ours is ``isIssued(under:)``.
    package init?(_ text: Span<UInt8>) {
        guard text.count == UploadTicketToken.length,
            text.extracting(0..<2).matches(UploadTicketToken.prefix),
            let bytes = Base64.decode(text.extracting(2...), .url), bytes.count == 2 * UploadTicketID.count,
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

    /// A secret, for the one answer that hands it out.
    package var text: String {
        let bytes = Secret(joining: [Secret(copying: id.bytes.span), tag])
        return "\(UploadTicketToken.prefix)" + bytes.withExposedBytes { Base64.encode($0, .url) }
    }
}

/// What upload tickets are derived under: the key of bearer tokens, with a label that theirs do not begin
/// with.
package struct UploadTicketKey: Sendable {
    private let key: HMACSHA256

    init(_ key: HMACSHA256) { self.key = key }

    fileprivate func tag(of id: UploadTicketID) -> Secret {
        let message = Array("countersign/1 upload ticket".utf8) + [0] + id.bytes
        var digest = key.authenticate(message.span)
        return Secret(taking: &digest).part(0..<16)
    }
}
