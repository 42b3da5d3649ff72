#if os(Linux)
    import CCrypto

    /// HMAC-SHA512 of one message, as its parts come. Source: RFC 2104, FIPS 180-4.
    ///
    /// Both states are as good as the key. They live on the heap because a struct cannot wipe its inline storage.
    package struct HMACSHA512: ~Copyable {
        /// Bytes of a MAC.
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
            // The second mask takes off the first.
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

        /// 64 bytes. Who sends them makes them public; until then they may open something.
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
