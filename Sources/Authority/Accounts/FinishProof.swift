import CountersignHandshake
import CountersignSeal

/// What ends a proof of a password besides OPAQUE's own: the device's signature over the transcript, and the client's MAC
/// over both. Source: docs/protocol.md, "Login".
struct FinishProof {
    private let signature: [UInt8]
    private let mac: [UInt8]
    private let transcript: [UInt8]

    init(_ finish: LoginFinish, _ transcript: [UInt8]) {
        signature = finish.signature
        mac = finish.mac
        self.transcript = transcript
    }

    func holds(under key: HMACSHA256, of device: Device) -> Bool {
        // The cheap one first: who fails it has not computed the session key, and is nobody's device.
        let expected = key.authenticate((transcript + signature).span)
        guard ConstantTime.equals(expected.span, mac.span) == .equal else { return false }
        return device.signingKey.verify(signature.span, of: transcript.span) == .equal
    }
}
