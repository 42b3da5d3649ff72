#if canImport(CryptoKit)
    import CryptoKit
    import Foundation

    /// Incremental SHA-256. Source: FIPS 180-4.
    package struct SHA256: ~Copyable {
        private var state = CryptoKit.SHA256()

        package init() {}

        package mutating func update(_ bytes: Span<UInt8>) {
            bytes.withUnsafeBytes { state.update(bufferPointer: $0) }
        }

        package consuming func finish() -> Digest32 { Digest32(copying: state.finalize()) }

        package static func digest(_ bytes: Span<UInt8>) -> Digest32 {
            var hash = SHA256()
            hash.update(bytes)
            return hash.finish()
        }
    }

    /// Incremental SHA-512. Source: FIPS 180-4.
    package struct SHA512: ~Copyable {
        private var state = CryptoKit.SHA512()

        package init() {}

        package mutating func update(_ bytes: Span<UInt8>) {
            bytes.withUnsafeBytes { state.update(bufferPointer: $0) }
        }

        package consuming func finish() -> Digest64 { Digest64(copying: state.finalize()) }

        package static func digest(_ bytes: Span<UInt8>) -> Digest64 {
            var hash = SHA512()
            hash.update(bytes)
            return hash.finish()
        }
    }

    /// MD5, only for the legacy schemes that are built on it. Source: RFC 1321.
    package struct MD5: ~Copyable {
        private var state = Insecure.MD5()

        package init() {}

        package mutating func update(_ bytes: Span<UInt8>) {
            bytes.withUnsafeBytes { state.update(bufferPointer: $0) }
        }

        package consuming func finish() -> Digest16 { Digest16(copying: state.finalize()) }
    }

    /// SHA-1, only to look passwords up in lists of breached ones, which are published in it. Source: FIPS
    /// 180-4.
    package enum SHA1 {
        package static func digest(_ secret: Secret) -> [UInt8] {
            var state = Insecure.SHA1()
            secret.withExposedBytes { bytes in
                bytes.withUnsafeBytes { state.update(bufferPointer: $0) }
            }
            return state.finalize().withUnsafeBytes { Array($0) }
        }
    }

    extension ArrayBytes {
        /// Copies a digest or MAC of CryptoKit, whose length is that of this type.
        init(copying bytes: some ContiguousBytes) {
            self.init()
            bytes.withUnsafeBytes { bytes in withUnsafeMutableBytes { $0.copyMemory(from: bytes) } }
        }
    }
#endif
