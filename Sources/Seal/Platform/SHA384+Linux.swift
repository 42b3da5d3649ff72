#if os(Linux)
    import CCrypto

    /// SHA-384, for P-384's signatures. Source: FIPS 180-4.
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
#endif
