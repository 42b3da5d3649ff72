import CountersignWire

/// A request's host in the two forms in which a policy may name it (`legacy-host`): lower-case, with the port
/// that the request writes and without it.
struct HostForms: Sendable {
    let whole: [UInt8]
    /// Nil where the request writes no port: then `whole` is all there is.
    let withoutPort: [UInt8]?

    /// `host` is as a client wrote it.
    init(_ host: Span<UInt8>) {
        var name: [UInt8] = []
        name.reserveCapacity(host.count)
        for index in 0..<host.count { name.append(ASCII.lowercased(host[index])) }
        whole = name
        // A colon inside brackets belongs to an IPv6 address.
        guard let colon = name.lastIndex(of: UInt8(ascii: ":")), name.last != UInt8(ascii: "]") else {
            withoutPort = nil
            return
        }
        withoutPort = Array(name[..<colon])
    }
}

/// Which of the apps that name a `legacy-host` the unsigned requests to a host belong to. A host that two
/// apps name belongs to neither of them, and neither does one that is named both with and without its port.
struct LegacyHosts<Owner: Sendable>: Sendable {
    enum Finding {
        case nobody
        case one(Owner)
        case several
    }

    /// Nil where several apps name the host.
    private var owners: [[UInt8]: Owner?] = [:]

    /// `host` is as the policy has it: lower-case, with a port or without.
    mutating func add(_ owner: Owner, at host: String) {
        let name = Array(host.utf8)
        owners.updateValue(owners[name] == nil ? owner : Owner?.none, forKey: name)
    }

    /// `host` is as a client wrote it.
    func find(at host: Span<UInt8>) -> Finding {
        guard !owners.isEmpty else { return .nobody }
        let forms = HostForms(host)
        let found = [forms.whole, forms.withoutPort].compactMap { $0 }.compactMap { owners[$0] }
        guard let first = found.first else { return .nobody }
        guard found.count == 1, let owner = first else { return .several }
        return .one(owner)
    }
}
