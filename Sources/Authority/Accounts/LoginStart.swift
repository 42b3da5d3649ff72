import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// What a client begins a proof of its password with: to sign in, or to set another one.
package struct LoginStart: Sendable {
    package let app: AppName
    package let binding: LoginBinding
    let ke1: KE1
    let purpose: LoginBinding.Purpose
    /// Whose password is to be changed; nil for logins.
    let session: SessionID?

    /// `ke1` is OPAQUE's, 96 bytes.
    package init(
        _ ke1: [UInt8], _ binding: LoginBinding, of app: AppName, changingPasswordOf session: SessionID? = nil
    ) throws(Refusal) {
        guard let ke1 = try? KE1(ke1) else { throw Refusal(.malformed, "member `ke1` is not OPAQUE's first message") }
        self.ke1 = ke1
        self.app = app
        self.binding = binding
        self.session = session
        purpose = session == nil ? .login : .passwordChange
    }

    /// Whether the device has signed this very start: not yet whether the account knows it. `time` is what it signed for,
    /// whole Unix seconds.
    package func isSigned(_ signature: [UInt8], for time: Int64) -> Bool {
        let transcript = binding.startProof(ke1: ke1.bytes, time: time)
        return binding.device.signingKey.verify(signature.span, of: transcript.span) == .equal
    }

    /// Stands for the start in a replay guard. Not the signature: ECDSA's have two spellings each.
    package func replayKey(for time: Int64) -> ShortBytes {
        let transcript = binding.startProof(ke1: ke1.bytes, time: time)
        return ShortBytes(SHA256.digest(transcript.span))
    }
}

/// The answer to a start: the same in length and kind for every name.
package struct LoginAnswer: Sendable {
    /// 16 bytes.
    package let loginID: [UInt8]
    /// 320 bytes.
    package let ke2: [UInt8]
}

/// What a client ends its proof with.
package struct LoginFinish: Sendable {
    package var loginID: [UInt8]
    /// OPAQUE's, 64 bytes.
    package var ke3: [UInt8]
    /// The device's, 64 bytes.
    package var signature: [UInt8]
    /// Under a key of OPAQUE's session key, 32 bytes.
    package var mac: [UInt8]
    /// What the transcript binds besides: SHA-256 of the sealed record, for a change of password.
    package var bound: [[UInt8]] = []

    package init(loginID: [UInt8], ke3: [UInt8], signature: [UInt8], mac: [UInt8]) {
        self.loginID = loginID
        self.ke3 = ke3
        self.signature = signature
        self.mac = mac
    }
}

/// A password that was proved, by the device that it was begun with.
package struct ProvedLogin: Sendable {
    package let account: Account
    /// Of the registration that it was proved against: what depends on it is done only while that stands.
    package let credential: [UInt8]
    package let binding: LoginBinding
    package let keys: LoginKeys
    /// To be refunded: this was no guess.
    package let receipt: LoginLimits.Receipt
}
