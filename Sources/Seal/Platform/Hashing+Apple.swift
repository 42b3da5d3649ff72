#if canImport(CryptoKit)
    import CryptoKit
    import Foundation

    /// SHA-256 as the bytes come. Source: FIPS 180-4.
    package struct SHA256: ~Copyable {
        private var state = CryptoKit.SHA256()

        package init() {}

        package mutating func update(_ bytes: Span<UInt8>) { bytes.withUnsafeBytes { state.update(bufferPointer: $0) } }

        package consuming func finish() -> Digest32 { Digest32(copying: state.finalize()) }

        package static func digest(_ bytes: Span<UInt8>) -> Digest32 {
            var hash = SHA256()
            hash.update(bytes)
            return hash.finish()
        }
    }

    /// SHA-512 as the bytes come. Source: FIPS 180-4.
    package struct SHA512: ~Copyable {
        private var state = CryptoKit.SHA512()

        package init() {}

        package mutating func update(_ bytes: Span<UInt8>) { bytes.withUnsafeBytes { state.update(bufferPointer: $0) } }

        package consuming func finish() -> Digest64 { Digest64(copying: state.finalize()) }

        package static func digest(_ bytes: Span<UInt8>) -> Digest64 {
            var hash = SHA512()
            hash.update(bytes)
            return hash.finish()
        }
    }

    /// MD5, for the legacy scheme that is built on it and for nothing else. Source: RFC 1321.
    package struct MD5: ~Copyable {
        private var state = Insecure.MD5()

        package init() {}

        package mutating func update(_ bytes: Span<UInt8>) { bytes.withUnsafeBytes { state.update(bufferPointer: $0) } }

        package consuming func finish() -> Digest16 { Digest16(copying: state.finalize()) }
    }

    extension ArrayBytes {
        /// CryptoKit's digests and MACs have exactly as many bytes as there is room for.
        init(copying bytes: some ContiguousBytes) {
            self.init()
            bytes.withUnsafeBytes { bytes in withUnsafeMutableBytes { $0.copyMemory(from: bytes) } }
        }
    }
#endif
