/// The addresses that share their first bits: `10.0.0.0/8`. Source: RFC 4632 §3.1.
package struct NetworkRange: Sendable, Hashable, CustomStringConvertible {
    private let first: NetworkAddress
    private let bits: Int
    /// The text that was given.
    package let description: String

    /// A single address is a range, too. Nil for any other text, and for a range that has bits set beyond its
    /// length: that is more likely a mistake than intended.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let address = NetworkAddress(text: String(parts[0])) else {
            return nil
        }
        let bytes = address.bytes
        var bits = bytes.count * 8
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(parts[1]),
                length <= bits,
                !(length..<bits).contains(where: { bytes[$0 / 8] & (0x80 >> ($0 % 8)) != 0 })
            else { return nil }
            bits = length
        }
        (first, self.bits, description) = (address, bits, text)
    }

    package func contains(_ address: NetworkAddress) -> Bool { address.shares(first: bits, with: first) }

    /// Whether the range has every address of its version.
    package var isWhole: Bool { bits == 0 }

    /// The ranges of a list joined by commas; nil if one of them is no range, and for more than ``most``.
    package static func list(_ text: String) -> [NetworkRange]? {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        let ranges = parts.compactMap { NetworkRange(String($0)) }
        return ranges.count == parts.count && ranges.count <= most ? ranges : nil
    }

    /// The most ranges of a list; each is compared with the address of each request.
    package static let most = 256
}

extension [NetworkRange] {
    package func contains(_ address: NetworkAddress) -> Bool { contains { $0.contains(address) } }
}
