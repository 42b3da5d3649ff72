import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A refresh request from a release whose signature verified. Source: docs/protocol.md, "Refresh".
package struct RefreshRequest: Sendable {
    /// Seconds before and after now within which `time` is fresh.
    package static let window: Int64 = 60

    /// The release that signed the request.
    package var release: AppRelease
    /// The session, and the epoch to leave.
    package var token: SessionToken
    /// 16 bytes.
    package var attempt: [UInt8]
    /// Whole Unix seconds.
    package var time: Int64
    /// 32 bytes: the HMAC under the request key of the epoch to leave.
    package var mac: [UInt8]
    /// 64 bytes: the signature of the device's key.
    package var signature: [UInt8]

    package init(
        release: AppRelease, token: SessionToken, attempt: [UInt8], time: Int64, mac: [UInt8],
        signature: [UInt8]
    ) {
        self.release = release
        self.token = token
        self.attempt = attempt
        self.time = time
        self.mac = mac
        self.signature = signature
    }

    package var transcript: [UInt8] {
        RefreshTranscript(
            app: release.app, release: release.id.description, token: token, attempt: attempt, time: time
        ).bytes
    }

    /// Refuses a request that is not fresh: a recorded request, delivered late, could otherwise end the
    /// session as reused.
    func checkTime(at now: Int64) throws(Refusal) {
        let (age, overflow) = now.subtractingReportingOverflow(time)
        guard !overflow, age.magnitude <= RefreshRequest.window.magnitude else {
            let (sent, here) = (CivilTime.rfc3339Text(time), CivilTime.rfc3339Text(now))
            throw Refusal(.stale, detail: "refresh: time \(sent), it is \(here)")
        }
    }

    /// Checks that the holder of the session's request key and of the device's key made the request. The
    /// request key of an epoch left long ago is gone; the device's signature alone then suffices, because
    /// such a request can only end the session.
    func check(against credentials: DeviceCredentials, requestKey key: Secret?) throws(Refusal) {
        let transcript = transcript
        if let key {
            let expected = key.withExposedBytes { HMACSHA256(key: $0) }.authenticate(transcript.span)
            guard ConstantTime.equals(expected.span, mac.span) == .equal else {
                throw Refusal(.badSignature, detail: "refresh: `mac` is not the session's")
            }
        }
        guard P256Point(credentials.signingKey)?.verify(signature.span, of: transcript.span) == .equal
        else { throw Refusal(.badSignature, detail: "refresh: `signature` is not the device's") }
    }
}

extension ReplayEntry {
    /// Admits a refresh once, by its transcript. The scope extends the prefix that the session's own nonces
    /// are stored under, so that the two never collide.
    init?(_ request: RefreshRequest, at now: Int64) {
        guard let scope = KeyID("\(KeyID(request.token).prefix(SessionToken.sessionLength)).refresh") else {
            return nil
        }
        self.init(
            keyID: scope, scheme: .messageSignatures,
            replayKey: Claim.ReplayKey(SHA256.digest(request.transcript.span)), created: request.time,
            now: now)
    }
}

/// The decision on a request to leave an epoch, from the session's state alone, without key or store, so
/// that one table tests all of it. Source: docs/protocol.md, "Refresh".
enum RefreshRule {
    enum Verdict: Sendable, Equatable {
        /// The attempt is known: the same successor is sent again, and nothing changes.
        case repeated(DeviceCredentials.Successor)
        /// Another attempt joins the existing successor; the value is what the row becomes.
        case joined(DeviceCredentials)
        /// The first attempt to leave this epoch: a successor is to be made for these credentials.
        case first(DeviceCredentials)
        /// The attempt led to an epoch that the session has already reached; it changes nothing.
        case superseded
        /// The attempt is not among those that led out of its epoch: two parties hold the device's keys.
        case reused
        /// The session has no such epoch.
        case unknown
    }

    /// `credentials` are the row's, updated with a first use that the row may not show yet. `now` is in
    /// whole Unix seconds.
    static func judge(
        _ credentials: DeviceCredentials, leaving epoch: UInt32, attempt: [UInt8], at now: Int64
    ) -> Verdict {
        if epoch == credentials.epoch &+ 1, let confirmed = credentials.confirmed(at: now) {
            // This request was signed with the offered epoch's key, which confirms that epoch.
            return .first(confirmed)
        }
        guard epoch <= credentials.epoch else { return .unknown }
        guard epoch == credentials.epoch else {
            return credentials.attempts.contains(attempt) ? .superseded : .reused
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
    /// The attempts to remember, newest first. A client makes one attempt and repeats it, so a repeated one
    /// is among the last few.
    static func newest(_ attempts: [[UInt8]], before older: [[UInt8]]) -> [[UInt8]] {
        Array((attempts + older).prefix(Successor.mostAttempts))
    }
}
