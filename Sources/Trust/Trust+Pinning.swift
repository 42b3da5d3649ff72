extension Trust: ExpressibleByArrayLiteral {
    /// `[.host("**.example.com", pins: […], backups: […])]`: these rules, and every other host by the machine's own.
    public init(arrayLiteral rules: Trust.Rule...) { self.init(rules, others: .system) }
}

extension Trust {
    /// Whether nobody but the holder of a key that was named can be taken for `host`: a certificate that the machine's authorities
    /// vouch for is not enough.
    package func isPinned(_ host: Trust.Host) -> Bool {
        rules(for: host).contains { $0.mode == .enforce && $0.policy.isPinning }
    }
}

extension Trust.Policy {
    /// A pinned authority has certificates of many hosts, so the name has to be checked; unless the key itself is the server's own.
    fileprivate var isPinning: Bool {
        switch kind {
        case .one(.pins, let chain, let name), .one(.certificates, let chain, let name):
            name == .checked || chain == .unchecked
        case .all(let policies): policies.contains(where: \.isPinning)
        case .one, .anything: false
        }
    }
}
