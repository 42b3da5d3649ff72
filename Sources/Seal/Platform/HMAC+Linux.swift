#if os(Linux)
    import CCrypto

    /// HMAC-SHA256 under one key, which is absorbed once: each message starts from a copy of the two keyed
    /// states. Source: RFC 2104 §4.
    ///
    /// The states are as secret as the key, so they are on the heap, where they can be wiped. They never
    /// change after `init`, so threads may share them.
    package final class HMACSHA256: @unchecked Sendable {
        private let inner: UnsafeMutablePointer<SHA256_CTX>
        private var outer: UnsafeMutablePointer<SHA256_CTX> { inner + 1 }

        package init(key: Span<UInt8>) {
            inner = .allocate(capacity: 2)
            inner.initialize(repeating: SHA256_CTX(), count: 2)
            var block = Digest64()
            if key.count > 64 {
                let short = SHA256.digest(key)
                for index in 0..<32 { block[index] = short[index] }
            } else {
                for index in 0..<key.count { block[index] = key[index] }
            }
            absorb(block, maskedWith: 0x36, into: inner)
            absorb(block, maskedWith: 0x5C, into: outer)
            block.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
        }

        deinit {
            OPENSSL_cleanse(inner, 2 * MemoryLayout<SHA256_CTX>.stride)
            inner.deallocate()
        }

        package func authenticate(_ message: Span<UInt8>) -> Digest32 {
            var context = inner.pointee
            message.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress { _ = SHA256_Update(&context, start, bytes.count) }
            }
            var digest = Digest32()
            digest.withUnsafeMutableBytes { digest in
                let start = digest.bindMemory(to: UInt8.self).baseAddress
                SHA256_Final(start, &context)
                context = outer.pointee
                SHA256_Update(&context, start, 32)
                SHA256_Final(start, &context)
            }
            return digest
        }

        /// Writes the 32 bytes to `target`, for a MAC that is used as a key: no copy of it remains on the
        /// stack.
        func authenticate(_ message: Span<UInt8>, into target: UnsafeMutableRawPointer) {
            var context = inner.pointee
            let start = target.assumingMemoryBound(to: UInt8.self)
            message.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress { _ = SHA256_Update(&context, start, bytes.count) }
            }
            SHA256_Final(start, &context)
            context = outer.pointee
            SHA256_Update(&context, start, 32)
            SHA256_Final(start, &context)
            OPENSSL_cleanse(&context, MemoryLayout<SHA256_CTX>.size)
        }

        private func absorb(
            _ block: Digest64, maskedWith mask: UInt8, into context: UnsafeMutablePointer<SHA256_CTX>
        ) {
            var masked = block
            for index in 0..<64 { masked[index] ^= mask }
            SHA256_Init(context)
            masked.withUnsafeMutableBytes { bytes in
                _ = SHA256_Update(context, bytes.baseAddress, bytes.count)
                OPENSSL_cleanse(bytes.baseAddress, bytes.count)
            }
        }
    }

    /// Incremental HMAC-SHA512 of one message. Source: RFC 2104, FIPS 180-4.
    ///
    /// Both states are as secret as the key. They are on the heap because a struct cannot wipe its inline
    /// storage.
    package struct HMACSHA512: ~Copyable {
        /// The length of a MAC, in bytes.
        package static let count = 64
        private static let blockCount = 128

        private let inner: UnsafeMutablePointer<SHA512_CTX>
        private var outer: UnsafeMutablePointer<SHA512_CTX> { inner + 1 }

        package init(key: borrowing Span<UInt8>) {
            inner = .allocate(capacity: 2)
            inner.initialize(repeating: SHA512_CTX(), count: 2)
            var block = InlineArray<128, UInt8>(repeating: 0)
            if key.count > HMACSHA512.blockCount {
                var short = SHA512.digest(key)
                for index in 0..<64 { block[index] = short[index] }
                short.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
            } else {
                for index in 0..<key.count { block[index] = key[index] }
            }
            // The second mask also removes the first.
            absorb(&block, maskedWith: 0x36, into: inner)
            absorb(&block, maskedWith: 0x36 ^ 0x5C, into: outer)
            withUnsafeMutableBytes(of: &block) { OPENSSL_cleanse($0.baseAddress, $0.count) }
        }

        package init(key: Secret) { self = key.withExposedBytes { HMACSHA512(key: $0) } }

        deinit {
            OPENSSL_cleanse(inner, 2 * MemoryLayout<SHA512_CTX>.stride)
            inner.deallocate()
        }

        package mutating func update(_ bytes: borrowing Span<UInt8>) {
            bytes.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress { _ = SHA512_Update(inner, start, bytes.count) }
            }
        }

        package mutating func update(_ secret: Secret) {
            secret.withPointer { _ = SHA512_Update(inner, $0, secret.count) }
        }

        /// The MAC, 64 bytes. It is a secret, because some MACs are keys; a MAC to be sent is copied out.
        package consuming func finish() -> Secret {
            Secret(count: HMACSHA512.count) { target in
                SHA512_Final(target, inner)
                SHA512_Update(outer, target, HMACSHA512.count)
                SHA512_Final(target, outer)
            }
        }

        private func absorb(
            _ block: inout InlineArray<128, UInt8>, maskedWith mask: UInt8,
            into context: UnsafeMutablePointer<SHA512_CTX>
        ) {
            for index in 0..<HMACSHA512.blockCount { block[index] ^= mask }
            SHA512_Init(context)
            block.span.withUnsafeBytes { _ = SHA512_Update(context, $0.baseAddress, $0.count) }
        }
    }
#endif
