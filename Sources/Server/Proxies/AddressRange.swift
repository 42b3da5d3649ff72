import CountersignHTTP

/// The addresses that share their first bits: `10.0.0.0/8`. Source: RFC 4632 §3.1.
public struct AddressRange: Sendable, Hashable, CustomStringConvertible {
    private let first: NetworkAddress
    private let bits: Int
    /// As it was written.
    public let description: String

    /// A single address is a range, too. Nil for what is neither, and for one that has bits set beyond its length: that is likelier a
    /// mistake than meant.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let address = NetworkAddress(text: String(parts[0])) else { return nil }
        let bytes = address.bytes
        var bits = bytes.count * 8
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(parts[1]), length <= bits,
                !(length..<bits).contains(where: { bytes[$0 / 8] & (0x80 >> ($0 % 8)) != 0 })
            else { return nil }
            bits = length
        }
        (first, self.bits, description) = (address, bits, text)
    }

    func contains(_ address: NetworkAddress) -> Bool { address.shares(first: bits, with: first) }
}
