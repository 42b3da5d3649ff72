#if canImport(CryptoKit)
    import CryptoKit
    import Foundation

    /// HMAC-SHA256 under one key, which is absorbed once: each message starts from a copy of the keyed state.
    /// The state never changes after `init`, so threads may share it. Source: RFC 2104 §4.
    package final class HMACSHA256: @unchecked Sendable {
        private let keyed: CryptoKit.HMAC<CryptoKit.SHA256>

        package init(key: Span<UInt8>) {
            keyed = key.withUnsafeBytes { CryptoKit.HMAC(key: SymmetricKey(data: $0)) }
        }

        package func authenticate(_ message: Span<UInt8>) -> Digest32 { Digest32(copying: mac(of: message)) }

        /// Writes the 32 bytes to `target`, for a MAC that is used as a key.
        func authenticate(_ message: Span<UInt8>, into target: UnsafeMutableRawPointer) {
            mac(of: message).withUnsafeBytes {
                UnsafeMutableRawBufferPointer(start: target, count: 32).copyMemory(from: $0)
            }
        }

        private func mac(of message: Span<UInt8>) -> CryptoKit.HMAC<CryptoKit.SHA256>.MAC {
            var mac = keyed
            message.withUnsafeBytes { mac.update(data: $0) }
            return mac.finalize()
        }
    }

    /// Incremental HMAC-SHA512 of one message. Source: RFC 2104, FIPS 180-4.
    package struct HMACSHA512: ~Copyable {
        /// The length of a MAC, in bytes.
        package static let count = 64

        private var mac: CryptoKit.HMAC<CryptoKit.SHA512>

        package init(key: borrowing Span<UInt8>) {
            mac = key.withUnsafeBytes { CryptoKit.HMAC(key: SymmetricKey(data: $0)) }
        }

        package init(key: Secret) { self = key.withExposedBytes { HMACSHA512(key: $0) } }

        package mutating func update(_ bytes: borrowing Span<UInt8>) {
            bytes.withUnsafeBytes { mac.update(data: $0) }
        }

        package mutating func update(_ secret: Secret) {
            secret.withPointer { mac.update(data: UnsafeRawBufferPointer(start: $0, count: secret.count)) }
        }

        /// The MAC, 64 bytes. It is a secret, because some MACs are keys; a MAC to be sent is copied out.
        package consuming func finish() -> Secret {
            let whole = mac.finalize()
            return Secret(count: HMACSHA512.count) { target in
                whole.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(start: target, count: HMACSHA512.count).copyMemory(from: $0)
                }
            }
        }
    }
#endif
