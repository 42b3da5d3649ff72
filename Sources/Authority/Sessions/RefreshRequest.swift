import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A refresh as it was sent, by a release whose signature held. Source: docs/protocol.md, "Refresh".
package struct RefreshRequest: Sendable {
    /// Seconds either side of now within which `time` is fresh.
    package static let window: Int64 = 60

    /// Who sent it.
    package var release: ReleaseKey
    /// The session, and the epoch to leave.
    package var token: SessionToken
    /// 16 bytes.
    package var attempt: [UInt8]
    /// Whole Unix seconds.
    package var time: Int64
    /// 32 bytes, under the request key of the epoch to leave.
    package var mac: [UInt8]
    /// 64 bytes, the device's.
    package var signature: [UInt8]

    package init(
        release: ReleaseKey, token: SessionToken, attempt: [UInt8], time: Int64, mac: [UInt8], signature: [UInt8]
    ) {
        self.release = release
        self.token = token
        self.attempt = attempt
        self.time = time
        self.mac = mac
        self.signature = signature
    }

    var transcript: [UInt8] {
        RefreshTranscript(
            app: release.app, release: release.id.description, token: token, attempt: attempt, time: time
        ).bytes
    }

    /// An old one says nothing, whoever brings it: who could keep one back could end the session with it.
    func checkTime(at now: Int64) throws(Refusal) {
        let (age, overflow) = now.subtractingReportingOverflow(time)
        guard !overflow, age.magnitude <= RefreshRequest.window.magnitude else {
            let (sent, here) = (CivilTime.internetText(time), CivilTime.internetText(now))
            throw Refusal(.stale, "refresh: time \(sent), it is \(here)")
        }
    }

    /// Whether session and device both made it. The key of an epoch that was left long ago is gone; then the device alone
    /// vouches for it, and all that can come of it is an end.
    func check(_ credentials: DeviceCredentials, _ key: Secret?) throws(Refusal) {
        let transcript = transcript
        if let key {
            let expected = key.withExposedBytes { HMACSHA256(key: $0) }.authenticate(transcript.span)
            guard ConstantTime.equals(expected.span, mac.span) == .equal else {
                throw Refusal(.badSignature, "refresh: `mac` is not the session's")
            }
        }
        guard P256Point(credentials.signingKey)?.verify(signature.span, of: transcript.span) == .equal
        else { throw Refusal(.badSignature, "refresh: `signature` is not the device's") }
    }
}

extension ReplayEntry {
    /// A refresh is taken once, by its transcript. What it is remembered under begins like the session's own nonces' scope
    /// and goes on, so that neither is taken for the other.
    init?(_ request: RefreshRequest, at now: Int64) {
        guard let scope = KeyID("\(KeyID(request.token).prefix(SessionToken.sessionLength)).refresh") else {
            return nil
        }
        self.init(
            keyID: scope, scheme: .messageSignatures,
            replayKey: Claim.ReplayKey(SHA256.digest(request.transcript.span)), created: request.time, now: now)
    }
}
