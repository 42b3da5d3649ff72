#if os(Linux)
    import CCrypto

    /// Hashes that other people's code may have used by mistake. For telling them so, and for nothing else: no verdict
    /// rests on these.
    package enum OtherHash: String, Sendable, CaseIterable {
        case md5 = "MD5"
        case sha1 = "SHA-1"
        case sha256 = "SHA-256"
        case sha384 = "SHA-384"
        case sha512 = "SHA-512"

        package func digest(_ message: Span<UInt8>) -> [UInt8] {
            write { output, count in
                message.withUnsafeBytes { _ = EVP_Digest($0.baseAddress, $0.count, output, count, function, nil) }
            }
        }

        /// Source: RFC 2104.
        package func hmac(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] {
            write { output, count in
                key.withUnsafeBufferPointer { key in
                    message.withUnsafeBufferPointer { message in
                        // Without an address OpenSSL takes the key of an earlier call.
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

        private func write(_ body: (UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt32>) -> Void) -> [UInt8] {
            var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            output.withUnsafeMutableBufferPointer { body($0.baseAddress, &count) }
            return Array(output[..<Int(count)])
        }
    }
#endif
