import CountersignHandshake
import CountersignSeal

/// A ``ResetDevice`` with its proof, as the authority receives it.
package struct SignedResetDevice: Sendable {
    package let device: ResetDevice
    private let signature: [UInt8]
    private let mac: [UInt8]

    /// The device's signature, 64 bytes, and the MAC, 32 bytes.
    package init(_ device: ResetDevice, signature: [UInt8], mac: [UInt8]) {
        self.device = device
        self.signature = signature
        self.mac = mac
    }

    /// Whether the sender has both the code and the device's key. The MAC comes first, because it is cheap.
    package func holds(for transcript: [UInt8], code: Secret) -> Bool {
        let expected = ResetDevice.key(from: code).authenticate((transcript + signature).span)
        guard ConstantTime.equals(expected.span, mac.span) == .equal else { return false }
        return device.signingKey.verify(signature.span, of: transcript.span) == .equal
    }
}
