/// Keys made from keys. What lies in between is a ``Secret`` too, and wiped as one.
extension Secret {
    /// `prefix` and then these bytes.
    package func prefixed(by prefix: StaticString) -> Secret {
        withExposedBytes { bytes in
            Secret(count: prefix.utf8CodeUnitCount + bytes.count) { start in
                start.copyMemory(from: prefix.utf8Start, byteCount: prefix.utf8CodeUnitCount)
                bytes.withUnsafeBytes { source in
                    guard let base = source.baseAddress else { return }
                    (start + prefix.utf8CodeUnitCount).copyMemory(from: base, byteCount: source.count)
                }
            }
        }
    }

    /// HMAC-SHA256 of `label` under these bytes: one step of a chain. Source: RFC 2104; the chain is its user's.
    package func derived(for label: Span<UInt8>) -> Secret {
        withExposedBytes { bytes in
            let hmac = HMACSHA256(key: bytes)
            return Secret(count: 32) { hmac.authenticate(label, into: $0) }
        }
    }
}
