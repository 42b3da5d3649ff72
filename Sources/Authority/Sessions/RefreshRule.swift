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
        /// Nil for a client from before transcripts were numbered.
        var counter: Int64?
        /// SHA-256 of the transcript.
        var digest: [UInt8]
        var purpose = RefreshTranscript.Purpose.renew
        /// The release that signed the request.
        var release: KeyID?
    }

    enum Verdict: Sendable, Equatable {
        /// The attempt of a client that does not number its transcripts, again: the same successor is sent,
        /// and nothing changes.
        case repeated(DeviceCredentials.Successor)
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
        /// A transcript without a counter, although the session's client numbers them.
        case unnumbered
    }

    /// `credentials` are the row's, updated with a first use that the row may not show yet. `now` is in
    /// whole Unix seconds.
    static func judge(
        _ credentials: DeviceCredentials, by statement: Statement, at now: Int64
    ) -> Verdict {
        guard let counter = statement.counter else {
            return credentials.counter > 0
                ? .unnumbered : judgeUnnumbered(credentials, by: statement, at: now)
        }
        if statement.purpose == .reportReuse || counter > RefreshTranscript.highestCounter { return .reused }
        guard counter > credentials.counter else {
            return judgeOlder(credentials, by: statement, counter: counter)
        }
        var counted = credentials
        counted.counter = counter
        counted.counterDigest = statement.digest
        let isKnown = credentials.attempts.contains(statement.attempt)
        // An attempt from before the session's first counter may have been forgotten; then this one counts
        // as known from now on.
        let startsCounting = credentials.counter == 0
        if statement.epoch == credentials.epoch &+ 1, let confirmed = counted.confirmed(at: now) {
            // This request was signed with the offered epoch's key, which confirms that epoch.
            return .first(confirmed)
        }
        guard statement.epoch <= credentials.epoch else { return .unknown }
        guard statement.epoch == credentials.epoch else {
            // Only the epoch just before may still be left, by a client that does not know that its
            // successor is in use.
            if isKnown, statement.epoch &+ 1 == credentials.epoch { return .superseded(counted) }
            guard startsCounting else { return .reused }
            counted.attempts = [statement.attempt]
            return .superseded(counted)
        }
        guard statement.epoch < .max else { return .unknown }
        guard let successor = credentials.successor else { return .first(counted) }
        guard successor.attempts.contains(statement.attempt) || startsCounting else { return .reused }
        counted.successor?.attempts = [statement.attempt]
        // The app may have been updated since it asked first.
        counted.successor?.release = statement.release
        return .recorded(counted)
    }

    /// A transcript whose counter is not above the highest one: no device signs a lower counter after a
    /// higher one, so this copy is older than what followed, or another party signed it.
    private static func judgeOlder(
        _ credentials: DeviceCredentials, by statement: Statement, counter: Int64
    ) -> Verdict {
        // No device signs two transcripts with one counter.
        if counter == credentials.counter, credentials.counterDigest != statement.digest { return .reused }
        // A device that waits for the answer to an older copy has sent no later one, so the successor is not
        // for the sender of this one: it may be the other holder of a vault that was copied with its attempt.
        return .superseded(nil)
    }

    /// The rule for clients that do not number their transcripts. A copy that was held cannot be told from
    /// another party's request, so no such request ends a session.
    private static func judgeUnnumbered(
        _ credentials: DeviceCredentials, by statement: Statement, at now: Int64
    ) -> Verdict {
        if statement.epoch == credentials.epoch &+ 1, let confirmed = credentials.confirmed(at: now) {
            return .first(confirmed)
        }
        guard statement.epoch <= credentials.epoch else { return .unknown }
        guard statement.epoch == credentials.epoch else { return .superseded(nil) }
        guard statement.epoch < .max else { return .unknown }
        guard let successor = credentials.successor else { return .first(credentials) }
        guard !successor.attempts.contains(statement.attempt) else { return .repeated(successor) }
        var joined = credentials
        joined.successor?.attempts = Array(
            ([statement.attempt] + successor.attempts).prefix(
                DeviceCredentials.Successor.mostUnnumberedAttempts))
        return .recorded(joined)
    }
}
