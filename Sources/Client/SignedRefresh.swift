import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One signed copy of a request to leave an epoch. The caller has stored its attempt and its counter. Source:
/// docs/protocol.md, "Refresh".
struct SignedRefresh: Sendable {
    /// The body of `POST token`.
    let body: JSONValue
    /// SHA-256 of the transcript.
    let digest: [UInt8]

    /// `key` is the request key of `token`'s epoch; `time` is in whole Unix seconds.
    init(
        of app: String, for release: KeyID, leaving token: SessionToken, key: Secret, attempt: [UInt8],
        time: Int64, counter: Int64, nonce: [UInt8], purpose: RefreshTranscript.Purpose,
        signer: any DeviceSigner
    ) throws(ClientOperationError) {
        let transcript = RefreshTranscript(
            app: app, release: release.description, token: token, attempt: attempt, time: time,
            counter: counter, nonce: nonce, purpose: purpose
        ).bytes
        let hash = SHA256.digest(transcript.span)
        digest = hash.indices.map { hash[$0] }
        let sum = key.withExposedBytes { HMACSHA256(key: $0) }.authenticate(transcript.span)
        body = [
            "token": .string(token.description), "attempt": .bytes(attempt), "time": .integer(time),
            "counter": .integer(counter), "nonce": .bytes(nonce), "purpose": .string(purpose.rawValue),
            "mac": .bytes(sum.indices.map { sum[$0] }), "signature": .bytes(try signer.sign(transcript)),
        ]
    }
}
