import CountersignWire

extension StructuredField.Kind {
    /// What the field of that lower-case name is registered as; nil where it is no structured field, or none that is known
    /// here. Source: IANA, Hypertext Transfer Protocol (HTTP) Field Name Registry, "Structured Type"; RFC 9421 §2.1.1: who
    /// does not know the type must not guess.
    static func registered(for name: borrowing Span<UInt8>) -> StructuredField.Kind? {
        for (known, kind) in table where name.matches(known) { return kind }
        return nil
    }

    private static let table: [(StaticString, StructuredField.Kind)] = [
        ("accept-ch", .list), ("accept-signature", .dictionary), ("cache-status", .list),
        ("capsule-protocol", .item), ("cdn-cache-control", .dictionary), ("client-cert", .item),
        ("client-cert-chain", .list), ("content-digest", .dictionary), ("cross-origin-embedder-policy", .item),
        ("cross-origin-opener-policy", .item), ("origin-agent-cluster", .item), ("priority", .dictionary),
        ("proxy-status", .list), ("repr-digest", .dictionary), ("signature", .dictionary),
        ("signature-input", .dictionary), ("want-content-digest", .dictionary), ("want-repr-digest", .dictionary),
    ]
}
