import CountersignOpaque
import CountersignSeal
import CountersignWire

/// A registration on its way to the authority: OPAQUE's record and, where it takes the place of one that stands, the one-time code
/// that allows it. Whoever read the code could use it first, so it travels as the record does: only the holder of the registration
/// key reads it, and only for the account that it was made for. Source: docs/protocol.md, "Sign-up".
package struct SealedRegistration: Sendable {
    /// OPAQUE's, 192 bytes.
    package let record: Secret
    /// As it was typed: UTF-8. Nil where there is none.
    package let resetCode: Secret?

    /// Bytes of a code, however it is spaced.
    package static let longestCode = 64

    package init(record: Secret, resetCode: Secret? = nil) {
        self.record = record
        self.resetCode = resetCode
    }

    /// What was sealed: the record, and behind it the code. Nil for what is shorter than a record, or longer than both.
    package init?(_ contents: Secret) {
        let count = MessageKind.registrationRecord.count
        guard (count...count + SealedRegistration.longestCode).contains(contents.count) else { return nil }
        record = contents.part(0..<count)
        resetCode = contents.count == count ? nil : contents.part(count..<contents.count)
    }

    /// For whoever has the private half of `receiver`, an X25519 key of 32 bytes. Nil where that is none.
    package func sealed(to receiver: [UInt8], for purpose: [UInt8]) -> [UInt8]? {
        SealedBox.seal(Secret(joining: [record] + [resetCode].compactMap { $0 }), to: receiver, for: purpose)
    }

    /// `handle` is what the start answered.
    package static func purpose(app: String, account: AccountName, handle: [UInt8]) -> [UInt8] {
        var transcript = Transcript("registration")
        transcript.add(app)
        transcript.add(account.bytes)
        transcript.add(handle)
        return transcript.bytes
    }
}
