/// HKDF with HMAC-SHA512. Source: RFC 5869.
package enum HKDFSHA512 {
    /// The length of a pseudorandom key, in bytes.
    package static let keyCount = HMACSHA512.count

    /// Extracts a pseudorandom key from the concatenated parts. Source: §2.2.
    package static func extract(salt: [UInt8] = [], from parts: [Secret]) -> Secret {
        var mac = HMACSHA512(key: salt.span)
        for part in parts { mac.update(part) }
        return mac.finish()
    }

    /// Expands the key to `count` bytes for this `info`, at most 16,320 (255 blocks). Source: §2.3.
    package static func expand(_ key: Secret, info: [UInt8], count: Int) -> Secret {
        precondition(count <= 255 * HMACSHA512.count, "a length is always one of the code's own constants")
        var blocks: [Secret] = []
        var counter: UInt8 = 0
        while blocks.count * HMACSHA512.count < count {
            counter += 1
            var mac = HMACSHA512(key: key)
            if let last = blocks.last { mac.update(last) }
            mac.update(info.span)
            mac.update([counter].span)
            blocks.append(mac.finish())
        }
        return Secret(joining: blocks).part(0..<count)
    }
}

/// Keys derived from keys. Each intermediate value is a ``Secret``, which is wiped.
extension Secret {
    /// `prefix` followed by these bytes.
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

    /// HMAC-SHA256 of `label` under these bytes: one step of a key derivation, which the caller defines.
    /// Source: RFC 2104.
    package func derived(for label: Span<UInt8>) -> Secret {
        withExposedBytes { bytes in
            let hmac = HMACSHA256(key: bytes)
            return Secret(count: 32) { hmac.authenticate(label, into: $0) }
        }
    }
}
