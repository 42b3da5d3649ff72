#if os(Linux)
    import CCrypto

    /// HMAC-SHA256 under one key, which is absorbed once: each message starts from a copy of the two keyed states.
    /// Source: RFC 2104 §4, which allows for exactly this.
    ///
    /// The states are as good as the key, so they live on the heap, where they can be wiped. They are never changed after
    /// `init`, which is what makes sharing them between threads sound.
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

        /// Writes the 32 bytes to `target`, for those that are a key themselves: nothing of them is left on the stack.
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

        private func absorb(_ block: Digest64, maskedWith mask: UInt8, into context: UnsafeMutablePointer<SHA256_CTX>) {
            var masked = block
            for index in 0..<64 { masked[index] ^= mask }
            SHA256_Init(context)
            masked.withUnsafeMutableBytes { bytes in
                _ = SHA256_Update(context, bytes.baseAddress, bytes.count)
                OPENSSL_cleanse(bytes.baseAddress, bytes.count)
            }
        }
    }
#endif
