import CountersignHandshake
import CountersignSchemes

/// The decision on a request to leave an epoch, from the session's state alone, without key or store, so
/// that one table tests all of it. Source: docs/protocol.md, "Refresh"; decision 0016.
enum RefreshRule {
    /// What a verified transcript says.
    struct Statement: Sendable {
        /// The epoch to leave.
        var epoch: UInt32
        var attempt: [UInt8]
        var counter: Int64
        /// SHA-256 of the transcript.
        var digest: [UInt8]
        var purpose = RefreshTranscript.Purpose.renew
        /// The release that signed the request.
        var release: KeyID?
    }

    enum Verdict: Sendable, Equatable {
        /// Another copy of the request for the existing successor; the value is what the row becomes.
        case recorded(DeviceCredentials)
        /// The first request to leave this epoch: a successor is to be made for these credentials.
        case first(DeviceCredentials)
        /// It changes nothing for the client: a copy that is older than what was seen since, or one from the
        /// epoch before by the attempt that led here. The value is what the row becomes; nil for no change.
        case superseded(DeviceCredentials?)
        /// Two parties hold the device's keys.
        case reused
        /// The session has no such epoch.
        case unknown
    }

    /// `credentials` are the row's, updated with a first use that the row may not show yet. `now` is in
    /// whole Unix seconds.
    static func judge(
        _ credentials: DeviceCredentials, by statement: Statement, at now: Int64
    ) -> Verdict {
        let counter = statement.counter
        if statement.purpose == .reportReuse || counter > RefreshTranscript.highestCounter { return .reused }
        guard counter > credentials.counter else { return judgeOlder(credentials, by: statement) }
        var counted = credentials
        counted.counter = counter
        counted.counterDigest = statement.digest
        if statement.epoch == credentials.epoch &+ 1, let confirmed = counted.confirmed(at: now) {
            // This request was signed with the offered epoch's key, which confirms that epoch.
            return .first(confirmed)
        }
        guard statement.epoch <= credentials.epoch else { return .unknown }
        guard statement.epoch == credentials.epoch else {
            // Only the epoch just before may still be left, by a client that does not know that its
            // successor is in use.
            let isKnown = credentials.attempts.contains(statement.attempt)
            guard isKnown, statement.epoch &+ 1 == credentials.epoch else { return .reused }
            return .superseded(counted)
        }
        guard statement.epoch < .max else { return .unknown }
        guard let successor = credentials.successor else { return .first(counted) }
        guard successor.attempts.contains(statement.attempt) else { return .reused }
        // The app may have been updated since it asked first.
        counted.successor?.release = statement.release
        return .recorded(counted)
    }

    /// A transcript whose counter is not above the highest one: no device signs a lower counter after a
    /// higher one, so this copy is older than what followed, or another party signed it.
    private static func judgeOlder(
        _ credentials: DeviceCredentials, by statement: Statement
    ) -> Verdict {
        let counter = statement.counter
        // No device signs two transcripts with one counter.
        if counter == credentials.counter, credentials.counterDigest != statement.digest { return .reused }
        // A device that waits for the answer to an older copy has sent no later one, so the successor is not
        // for the sender of this one: it may be the other holder of a vault that was copied with its attempt.
        return .superseded(nil)
    }
}
