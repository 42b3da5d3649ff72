import CountersignWire

/// What a refresh says: the device signs it, and the session's request key authenticates it, over the same bytes. The request
/// that carries it is signed by the release. Source: docs/protocol.md, "Refresh".
package struct RefreshTranscript: Sendable {
    /// One attempt to leave an epoch: 16 random bytes, kept before it is sent and used until it is answered.
    package static let attemptCount = 16

    package var app: String
    /// The release's key id.
    package var release: String
    /// The session, and the epoch to leave.
    package var token: SessionToken
    package var attempt: [UInt8]
    /// Whole Unix seconds.
    package var time: Int64

    package init(app: String, release: String, token: SessionToken, attempt: [UInt8], time: Int64) {
        self.app = app
        self.release = release
        self.token = token
        self.attempt = attempt
        self.time = time
    }

    package var bytes: [UInt8] {
        var transcript = Transcript("refresh")
        transcript.add(app)
        transcript.add(release)
        transcript.add(token.id.bytes)
        transcript.add(UInt64(token.epoch))
        transcript.add(attempt)
        transcript.add(UInt64(bitPattern: time))
        return transcript.bytes
    }
}
