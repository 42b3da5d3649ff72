#if os(Linux)
    import CCrypto

    /// Incremental SHA-256. Source: FIPS 180-4.
    package struct SHA256: ~Copyable {
        private var context = SHA256_CTX()

        package init() { SHA256_Init(&context) }

        package mutating func update(_ bytes: Span<UInt8>) {
            bytes.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress { _ = SHA256_Update(&context, start, bytes.count) }
            }
        }

        package consuming func finish() -> Digest32 {
            var digest = Digest32()
            digest.withUnsafeMutableBytes {
                _ = SHA256_Final($0.bindMemory(to: UInt8.self).baseAddress, &context)
            }
            return digest
        }

        package static func digest(_ bytes: Span<UInt8>) -> Digest32 {
            var hash = SHA256()
            hash.update(bytes)
            return hash.finish()
        }
    }

    /// Incremental SHA-512. Source: FIPS 180-4.
    package struct SHA512: ~Copyable {
        private var context = SHA512_CTX()

        package init() { SHA512_Init(&context) }

        package mutating func update(_ bytes: Span<UInt8>) {
            bytes.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress { _ = SHA512_Update(&context, start, bytes.count) }
            }
        }

        package consuming func finish() -> Digest64 {
            var digest = Digest64()
            digest.withUnsafeMutableBytes {
                _ = SHA512_Final($0.bindMemory(to: UInt8.self).baseAddress, &context)
            }
            // The context may contain a secret: OPAQUE hashes a password and its unblinded evaluation.
            OPENSSL_cleanse(&context, MemoryLayout<SHA512_CTX>.size)
            return digest
        }

        package static func digest(_ bytes: Span<UInt8>) -> Digest64 {
            var hash = SHA512()
            hash.update(bytes)
            return hash.finish()
        }
    }

    /// MD5, only for the legacy schemes that are built on it. Source: RFC 1321.
    package struct MD5: ~Copyable {
        private var context = MD5_CTX()

        package init() { MD5_Init(&context) }

        package mutating func update(_ bytes: Span<UInt8>) {
            bytes.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress { _ = MD5_Update(&context, start, bytes.count) }
            }
        }

        package consuming func finish() -> Digest16 {
            var digest = Digest16()
            digest.withUnsafeMutableBytes {
                _ = MD5_Final($0.bindMemory(to: UInt8.self).baseAddress, &context)
            }
            // The context contains a secret: the legacy schemes hash their key with the message.
            OPENSSL_cleanse(&context, MemoryLayout<MD5_CTX>.size)
            return digest
        }
    }

    /// SHA-1, only to look passwords up in lists of breached ones, which are published in it. Source: FIPS
    /// 180-4.
    package enum SHA1 {
        package static func digest(_ secret: Secret) -> [UInt8] {
            var context = SHA_CTX()
            SHA1_Init(&context)
            secret.withExposedBytes { bytes in
                bytes.withUnsafeBytes { bytes in
                    if let start = bytes.baseAddress { _ = SHA1_Update(&context, start, bytes.count) }
                }
            }
            var digest = [UInt8](repeating: 0, count: 20)
            SHA1_Final(&digest, &context)
            OPENSSL_cleanse(&context, MemoryLayout<SHA_CTX>.size)
            return digest
        }
    }

    /// SHA-384, for signatures on P-384. Source: FIPS 180-4.
    package enum SHA384 {
        package static func digest(_ bytes: Span<UInt8>) -> InlineArray<48, UInt8> {
            var context = SHA512_CTX()
            SHA384_Init(&context)
            bytes.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress { _ = SHA384_Update(&context, start, bytes.count) }
            }
            var digest = InlineArray<48, UInt8>(repeating: 0)
            var span = digest.mutableSpan
            span.withUnsafeMutableBufferPointer { _ = SHA384_Final($0.baseAddress, &context) }
            return digest
        }
    }

    /// Hashes that a client may have used by mistake. They serve only to explain a refusal; no decision
    /// depends on them.
    package enum DiagnosticHash: String, Sendable, CaseIterable {
        case md5 = "MD5"
        case sha1 = "SHA-1"
        case sha256 = "SHA-256"
        case sha384 = "SHA-384"
        case sha512 = "SHA-512"

        package func digest(_ message: Span<UInt8>) -> [UInt8] {
            write { output, count in
                message.withUnsafeBytes {
                    _ = EVP_Digest($0.baseAddress, $0.count, output, count, function, nil)
                }
            }
        }

        /// Source: RFC 2104.
        package func hmac(key: Span<UInt8>, message: Span<UInt8>) -> [UInt8] {
            write { output, count in
                key.withUnsafeBufferPointer { key in
                    message.withUnsafeBufferPointer { message in
                        // Without an address, OpenSSL would use the key of an earlier call.
                        var none: UInt8 = 0
                        withUnsafePointer(to: &none) { none in
                            _ = HMAC(
                                function, key.baseAddress ?? none, Int32(truncatingIfNeeded: key.count),
                                message.baseAddress ?? none, message.count, output, count)
                        }
                    }
                }
            }
        }

        private var function: OpaquePointer? {
            switch self {
            case .md5: EVP_md5()
            case .sha1: EVP_sha1()
            case .sha256: EVP_sha256()
            case .sha384: EVP_sha384()
            case .sha512: EVP_sha512()
            }
        }

        private func write(_ body: (UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt32>) -> Void)
            -> [UInt8]
        {
            var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            output.withUnsafeMutableBufferPointer { body($0.baseAddress, &count) }
            return Array(output[..<Int(count)])
        }
    }
#endif
