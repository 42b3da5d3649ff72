import CountersignSeal
import CountersignWire

/// A registration's record on its way to the authority: only the holder of the registration key reads it, and only for the
/// account that it was made for. Source: docs/protocol.md, "Sign-up".
package enum SealedRegistration {
    /// `handle` is what the start answered.
    package static func purpose(app: String, account: AccountName, handle: [UInt8]) -> [UInt8] {
        var transcript = Transcript("registration")
        transcript.add(app)
        transcript.add(account.bytes)
        transcript.add(handle)
        return transcript.bytes
    }
}
