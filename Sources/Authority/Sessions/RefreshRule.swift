import CountersignWire

/// What an attempt to leave an epoch comes to, from what is known of the session alone. No clock, no key, no store: the whole
/// of it is a table. Source: docs/protocol.md, "Refresh".
enum RefreshRule {
    enum Verdict: Sendable, Equatable {
        /// Asked before: the same successor once more, and nothing changes.
        case repeated(DeviceCredentials.Successor)
        /// Another attempt, at the successor that there is; what the row becomes.
        case joined(DeviceCredentials)
        /// The first to leave this epoch: a successor is to be made for these credentials.
        case first(DeviceCredentials)
        /// It led to where the session is by now, and changes nothing.
        case settled
        /// Somebody left an epoch by another way than the one that was taken: two hold the device's keys.
        case reused
        /// No such epoch yet.
        case unknown
    }

    /// `credentials` are the row's, with a first use that the row does not show yet. `now` is in whole Unix seconds.
    static func judge(
        _ credentials: DeviceCredentials, leaving epoch: UInt32, attempt: [UInt8], at now: Int64
    ) -> Verdict {
        if epoch == credentials.epoch &+ 1, let confirmed = credentials.confirmed(at: now) {
            // Its key was used for this very request.
            return .first(confirmed)
        }
        guard epoch <= credentials.epoch else { return .unknown }
        guard epoch == credentials.epoch else {
            return credentials.attempts.contains(attempt) ? .settled : .reused
        }
        guard epoch < .max else { return .unknown }
        guard let successor = credentials.successor else { return .first(credentials) }
        guard !successor.attempts.contains(attempt) else { return .repeated(successor) }
        var joined = credentials
        joined.successor?.attempts = DeviceCredentials.newest([attempt], before: successor.attempts)
        return .joined(joined)
    }
}

extension DeviceCredentials {
    /// The attempts that are remembered, newest first: a client makes one and keeps to it, so those that come again are among
    /// the last few.
    static func newest(_ attempts: [[UInt8]], before older: [[UInt8]]) -> [[UInt8]] {
        Array((attempts + older).prefix(Successor.mostAttempts))
    }
}
