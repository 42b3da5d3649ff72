#if canImport(CryptoKit)
    import CryptoKit
    import Foundation

    /// ECDSA on P-256 with signatures r ‖ s, 64 bytes. Source: RFC 9421 §3.3.4.
    struct ECDSA: Sendable {
        /// The curve. Keys on P-384 are refused: only the server on Linux uses them.
        enum Curve: Sendable { case p256, p384 }

        private let key: KeyHandle

        init(_ curve: Curve, key: KeyHandle, purpose: KeyPurpose) throws(SealError) {
            guard curve == .p256, key.p256Public != nil, purpose == .verify || key.p256Private != nil else {
                throw SealError.unusableKey(expected: "a key on P-256 that is made for this")
            }
            self.key = key
        }

        func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> ConstantTime.Verdict {
            ECDSA.verifyOnce(signature, of: message, under: key)
        }

        /// Verifies under a key that is used once.
        static func verifyOnce(
            _ signature: Span<UInt8>, of message: Span<UInt8>, under key: KeyHandle
        ) -> ConstantTime.Verdict {
            let parsed = signature.withUnsafeBytes { try? P256.Signing.ECDSASignature(rawRepresentation: $0) }
            guard let parsed, let key = key.p256Public else { return .different }
            return message.withUnsafeBytes { key.isValidSignature(parsed, for: $0) } ? .equal : .different
        }

        /// Nil if CryptoKit fails.
        func sign(_ message: Span<UInt8>) -> [UInt8]? {
            let signature = message.withUnsafeBytes { try? key.p256Private?.signature(for: $0) }
            return signature.map { Array($0.rawRepresentation) }
        }
    }

    /// RSA is supported only on Linux, where the server runs: the initializer always throws.
    struct RSA: Sendable {
        enum Form: Sendable { case pss, v15 }

        init(_ form: Form, key: KeyHandle, purpose: KeyPurpose) throws(SealError) {
            throw SealError.unusableKey(
                expected: "a key for Ed25519 or P-256; RSA is not done on this platform")
        }

        func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> ConstantTime.Verdict { .different }

        func sign(_ message: Span<UInt8>) -> [UInt8]? { nil }
    }
#endif
