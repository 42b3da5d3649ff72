#if os(Linux)
    import CCrypto

    /// SHA-256 as the bytes come. Source: FIPS 180-4.
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
            digest.withUnsafeMutableBytes { _ = SHA256_Final($0.bindMemory(to: UInt8.self).baseAddress, &context) }
            return digest
        }

        package static func digest(_ bytes: Span<UInt8>) -> Digest32 {
            var hash = SHA256()
            hash.update(bytes)
            return hash.finish()
        }
    }

    /// SHA-512 as the bytes come. Source: FIPS 180-4.
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
            digest.withUnsafeMutableBytes { _ = SHA512_Final($0.bindMemory(to: UInt8.self).baseAddress, &context) }
            // The context may have seen a secret: OPAQUE hashes a password's blinded evaluation.
            OPENSSL_cleanse(&context, MemoryLayout<SHA512_CTX>.size)
            return digest
        }

        package static func digest(_ bytes: Span<UInt8>) -> Digest64 {
            var hash = SHA512()
            hash.update(bytes)
            return hash.finish()
        }
    }

    /// MD5, for the legacy scheme that is built on it and for nothing else. Source: RFC 1321.
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
            digest.withUnsafeMutableBytes { _ = MD5_Final($0.bindMemory(to: UInt8.self).baseAddress, &context) }
            // The context has seen a secret: MD5's scheme hashes its key with the message.
            OPENSSL_cleanse(&context, MemoryLayout<MD5_CTX>.size)
            return digest
        }
    }
#endif
