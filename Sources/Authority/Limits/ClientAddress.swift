/// Where a connection comes from, as far as one party can be told from another: an IPv4 address, or an IPv6 network of
/// 64 bits, since that is what one subscriber gets and may choose addresses from at will. Source: RFC 6177, RFC 7421.
package struct ClientAddress: Sendable, Hashable {
    /// Four bytes or eight.
    package let bytes: [UInt8]

    /// From the address in network order: 4 bytes, or 16. An IPv4 address that came mapped into IPv6 is that IPv4
    /// address. Nil for any other count. Source: RFC 4291 §2.5.5.2.
    package init?(_ address: Span<UInt8>) {
        switch address.count {
        case 4: bytes = address.withUnsafeBufferPointer { Array($0) }
        case 16:
            let isMapped =
                (0..<10).allSatisfy { address[$0] == 0 } && address[10] == 0xFF && address[11] == 0xFF
            bytes = address.withUnsafeBufferPointer { Array(isMapped ? $0[12..<16] : $0[0..<8]) }
        default: return nil
        }
    }

    /// Stands for all whose address is not known: they count as one. `0.0.0.0`, which is nobody's.
    package static let unknown = ClientAddress(known: [0, 0, 0, 0])

    private init(known bytes: [UInt8]) { self.bytes = bytes }
}
