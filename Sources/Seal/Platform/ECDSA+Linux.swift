#if os(Linux)
    import CCrypto

    /// ECDSA with signatures r ‖ s, each as long as the curve's order. Source: RFC 9421 §3.3.4, §3.3.5.
    struct ECDSA: Sendable {
        /// The curve and its hash.
        enum Curve: Sendable {
            case p256, p384

            /// The length of r and of s, in bytes.
            var half: Int { self == .p256 ? 32 : 48 }
            var hash: OpaquePointer? { self == .p256 ? EVP_sha256() : EVP_sha384() }
        }

        private let curve: Curve
        private let operation: EVPOperation

        init(_ curve: Curve, key: KeyHandle, purpose: KeyPurpose) throws(SealError) {
            self.curve = curve
            operation = try EVPOperation(key, purpose: purpose, hash: curve.hash)
        }

        func verify(_ signature: Span<UInt8>, of message: Span<UInt8>) -> ConstantTime.Verdict {
            let half = curve.half
            guard signature.count == 2 * half else { return .different }
            let der = ECDSA.der(signature, half: half)
            let encoded = der.bytes.span.extracting(0..<der.count)
            switch curve {
            case .p256:
                let digest = SHA256.digest(message)
                return operation.verify(encoded, ofDigest: digest.span)
            case .p384:
                let digest = SHA384.digest(message)
                return operation.verify(encoded, ofDigest: digest.span)
            }
        }

        /// Verifies under a P-256 key that is used once, without preparing an operation.
        static func verifyOnce(
            _ signature: Span<UInt8>, of message: Span<UInt8>, under key: KeyHandle
        ) -> ConstantTime.Verdict {
            let half = Curve.p256.half
            guard signature.count == 2 * half, let context = EVP_PKEY_CTX_new(key.pointer, nil) else {
                return .different
            }
            defer { EVP_PKEY_CTX_free(context) }
            defer { ERR_clear_error() }
            let der = ECDSA.der(signature, half: half)
            let digest = SHA256.digest(message)
            guard EVP_PKEY_verify_init(context) == 1 else { return .different }
            let holds = der.bytes.span.withUnsafeBufferPointer { encoded in
                digest.span.withUnsafeBufferPointer { digest in
                    EVP_PKEY_verify(context, encoded.baseAddress, der.count, digest.baseAddress, digest.count)
                }
            }
            return holds == 1 ? .equal : .different
        }

        /// Nil if OpenSSL fails.
        func sign(_ message: Span<UInt8>) -> [UInt8]? {
            let encoded: [UInt8]?
            switch curve {
            case .p256:
                let digest = SHA256.digest(message)
                encoded = operation.sign(digest: digest.span)
            case .p384:
                let digest = SHA384.digest(message)
                encoded = operation.sign(digest: digest.span)
            }
            guard let encoded else { return nil }
            return raw(encoded)
        }

        /// Converts a DER signature to r ‖ s.
        private func raw(_ der: [UInt8]) -> [UInt8]? {
            let parsed = der.withUnsafeBufferPointer { der -> OpaquePointer? in
                var cursor = der.baseAddress
                return d2i_ECDSA_SIG(nil, &cursor, der.count)
            }
            guard let parsed else { return nil }
            defer { ECDSA_SIG_free(parsed) }
            let half = Int32(curve.half)
            var bytes = [UInt8](repeating: 0, count: 2 * curve.half)
            let written = bytes.withUnsafeMutableBufferPointer { bytes -> Bool in
                guard let start = bytes.baseAddress else { return false }
                return BN_bn2binpad(ECDSA_SIG_get0_r(parsed), start, half) == half
                    && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), start + Int(half), half) == half
            }
            return written ? bytes : nil
        }

        /// Converts r ‖ s to the DER that OpenSSL reads, a sequence of two integers. Source: RFC 3279 §2.2.3.
        static func der(_ signature: Span<UInt8>, half: Int) -> DER {
            var der = DER()
            // The integers have at most 49 bytes each, so every length takes one byte.
            der.append(0x30)
            der.append(0)
            der.append(integer: signature.extracting(0..<half))
            der.append(integer: signature.extracting(half...))
            der.bytes[1] = UInt8(truncatingIfNeeded: der.count - 2)
            return der
        }

        /// The DER of one signature, stored inline: at most 2 + 2 × (2 + 49) bytes.
        struct DER {
            var bytes = InlineArray<104, UInt8>(repeating: 0)
            var count = 0

            var array: [UInt8] { (0..<count).map { bytes[$0] } }

            mutating func append(_ byte: UInt8) {
                bytes[count] = byte
                count += 1
            }

            /// Appends the integer in its shortest form, the only one that DER allows. Source: X.690 §8.3.
            mutating func append(integer: Span<UInt8>) {
                var first = 0
                while first < integer.count - 1, integer[first] == 0 { first += 1 }
                let isHigh = integer[first] & 0x80 != 0
                append(0x02)
                append(UInt8(truncatingIfNeeded: integer.count - first + (isHigh ? 1 : 0)))
                if isHigh { append(0) }
                for index in first..<integer.count { append(integer[index]) }
            }
        }
    }
#endif
