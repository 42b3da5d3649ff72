#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// An Internet address or a network of addresses: 4 or 16 bytes and the length of the prefix in bits.
///
/// A value without heap storage. An IPv4-mapped IPv6 address equals the IPv4 address. Source: RFC 4291
/// §2.5.5.2.
@usableFromInline package struct NetworkAddress: Sendable, Hashable {
    /// The first and the second 8 bytes of an IPv6 address; the last 4 bytes hold an IPv4 address.
    @usableFromInline let high: UInt64
    @usableFromInline let low: UInt64
    /// 32 for an IPv4 address, 128 for an IPv6 address, less for a network of IPv6 addresses.
    @usableFromInline package let bits: UInt8

    @inlinable init(high: UInt64, low: UInt64, bits: UInt8) {
        self.high = high
        self.low = low
        self.bits = bits
    }

    @inlinable package static func == (left: NetworkAddress, right: NetworkAddress) -> Bool {
        left.low == right.low && left.high == right.high && left.bits == right.bits
    }

    @inlinable package func hash(into hasher: inout Hasher) {
        hasher.combine(high)
        hasher.combine(low)
        hasher.combine(bits)
    }

    /// Reads 4 or 16 bytes in network order; nil for any other count.
    package init?(bytes: Span<UInt8>) {
        func number(_ range: Range<Int>) -> UInt64 {
            var number: UInt64 = 0
            for index in range { number = number << 8 | UInt64(bytes[index]) }
            return number
        }
        switch bytes.count {
        case 4: self.init(high: 0, low: number(0..<4), bits: 32)
        case 16:
            let (high, low) = (number(0..<8), number(8..<16))
            let isMapped = high == 0 && low >> 32 == 0xFFFF
            self.init(high: high, low: isMapped ? low & 0xFFFF_FFFF : low, bits: isMapped ? 32 : 128)
        default: return nil
        }
    }

    /// Parses text such as `192.0.2.1` or `2001:db8::1`, without port, brackets or interface.
    package init?(text: String) { self.init(text: Array(text.utf8).span) }

    /// Parses the same text from bytes, without allocation.
    package init?(text: Span<UInt8>) {
        // `inet_pton` takes NUL-terminated text of at most INET6_ADDRSTRLEN bytes including the NUL.
        guard (2..<Int(INET6_ADDRSTRLEN)).contains(text.count) else { return nil }
        for index in text.indices where text[index] == 0 { return nil }
        let parsed = text.withUnsafeBytes { source in
            withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { memory -> NetworkAddress? in
                memory.copyMemory(from: source)
                memory[source.count] = 0
                guard let characters = memory.bindMemory(to: CChar.self).baseAddress else { return nil }
                var address: (UInt64, UInt64) = (0, 0)
                return withUnsafeMutableBytes(of: &address) { bytes in
                    let count =
                        inet_pton(AF_INET, characters, bytes.baseAddress) == 1
                        ? 4 : inet_pton(AF_INET6, characters, bytes.baseAddress) == 1 ? 16 : 0
                    return UnsafeRawBufferPointer(rebasing: bytes[..<count]).withMemoryRebound(to: UInt8.self)
                    {
                        NetworkAddress(bytes: $0.span)
                    }
                }
            }
        }
        guard let parsed else { return nil }
        self = parsed
    }

    /// Stands for all callers of unknown address, which share one budget: `0.0.0.0` belongs to no host.
    package static let unknown = NetworkAddress(high: 0, low: 0, bits: 32)

    @inlinable package var isIPv6: Bool { bits != 32 || high != 0 }

    /// The unit that limits count by: an IPv4 address, or the IPv6 /64 of one subscriber. Source: RFC 6177.
    @inlinable package var subscriber: NetworkAddress { isIPv6 ? prefix(bits: 64) : self }

    /// The network of the first `bits` (1 to 64) of an IPv6 address; an IPv4 address is returned unchanged.
    @inlinable package func prefix(bits: UInt8) -> NetworkAddress {
        guard isIPv6, bits > 0, bits <= 64 else { return self }
        return NetworkAddress(high: high & ~UInt64(0) << UInt64(64 - bits), low: 0, bits: bits)
    }

    /// Whether the first `count` bits of both addresses are equal; false for addresses of different
    /// versions.
    @inlinable package func shares(first count: Int, with other: NetworkAddress) -> Bool {
        guard isIPv6 == other.isIPv6 else { return false }
        guard isIPv6 else { return (low ^ other.low) >> (32 - min(max(count, 0), 32)) == 0 }
        let inHigh = min(max(count, 0), 64)
        let inLow = min(max(count - 64, 0), 64)
        return (high ^ other.high) >> (64 - inHigh) == 0 && (low ^ other.low) >> (64 - inLow) == 0
    }

    /// 4 or 16 bytes in network order.
    package var bytes: [UInt8] {
        func bytes(of number: UInt64, count: UInt64) -> [UInt8] {
            (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        }
        if isIPv6 { return bytes(of: high, count: 8) + bytes(of: low, count: 8) }
        return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: low >> $0) }
    }

    /// The address as text: `192.0.2.1`, `2001:db8::1`, or with a network's prefix length `2001:db8::/64`.
    package var text: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(isIPv6 ? AF_INET6 : AF_INET, bytes, &text, socklen_t(text.count)) != nil else {
            return "unknown"
        }
        let address = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return bits == 32 || bits == 128 ? address : "\(address)/\(bits)"
    }
}
