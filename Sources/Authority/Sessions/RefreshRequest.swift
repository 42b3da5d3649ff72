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
    /// The transcript's number, from 1.
    package var counter: Int64
    /// 16 bytes.
    package var nonce: [UInt8]
    package var purpose = RefreshTranscript.Purpose.renew
    /// 32 bytes: the HMAC under the request key of the epoch to leave.
    package var mac: [UInt8]
    /// 64 bytes: the signature of the device's key.
    package var signature: [UInt8]

    package init(
        release: AppRelease, token: SessionToken, attempt: [UInt8], time: Int64, counter: Int64,
        nonce: [UInt8], purpose: RefreshTranscript.Purpose = .renew, mac: [UInt8], signature: [UInt8]
    ) {
        self.release = release
        self.token = token
        self.attempt = attempt
        self.time = time
        self.counter = counter
        self.nonce = nonce
        self.purpose = purpose
        self.mac = mac
        self.signature = signature
    }

    package var transcript: [UInt8] {
        RefreshTranscript(
            app: release.app, release: release.id.description, token: token, attempt: attempt, time: time,
            counter: counter, nonce: nonce, purpose: purpose
        ).bytes
    }

    var transcriptDigest: [UInt8] {
        let digest = SHA256.digest(transcript.span)
        return digest.indices.map { digest[$0] }
    }

    /// Refuses a request that is not fresh. Freshness bounds for how long a recorded request is of use; the
    /// order of requests comes from their counters alone.
    func checkTime(at now: Int64) throws(Refusal) {
        let (age, overflow) = now.subtractingReportingOverflow(time)
        guard !overflow, age.magnitude <= RefreshRequest.window.magnitude else {
            let (sent, here) = (CivilTime.rfc3339Text(time), CivilTime.rfc3339Text(now))
            throw Refusal(.stale, detail: "refresh: time \(sent); the time here is \(here)", decidedAt: now)
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
