import CountersignGate
import CountersignSchemes
import CountersignWire

/// A request's host in the two forms in which a policy may name it (`legacy-host`): lower-case, with the port
/// that the request writes and without it.
struct HostForms: Sendable {
    let whole: [UInt8]
    /// Nil if the request writes no port; `whole` is then the only form.
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
    enum Match {
        case noOwner
        case one(Owner)
        case ambiguous
    }

    /// Nil if several apps name the host.
    private var owners: [[UInt8]: Owner?] = [:]

    /// `host` is as the policy has it: lower-case, with a port or without.
    mutating func add(_ owner: Owner, at host: String) {
        let name = Array(host.utf8)
        owners.updateValue(owners[name] == nil ? owner : Owner?.none, forKey: name)
    }

    /// `host` is as a client wrote it.
    func find(at host: Span<UInt8>) -> Match {
        guard !owners.isEmpty else { return .noOwner }
        let forms = HostForms(host)
        let found = [forms.whole, forms.withoutPort].compactMap { $0 }.compactMap { owners[$0] }
        guard let first = found.first else { return .noOwner }
        guard found.count == 1, let owner = first else { return .ambiguous }
        return .one(owner)
    }
}

/// The hosts for which some app's policy allows a scheme that signs inside form bodies. The gateway
/// searches the body of an unverified request for a signature only there. An app that names its
/// `legacy-host` has its legacy clients on that host only.
struct SignedFormHosts: Sendable {
    private var isAllowedAnywhere = false
    /// As policies have them: lower-case, with a port or without.
    private var hosts: Set<[UInt8]> = []

    mutating func add(_ policy: Policy) {
        guard policy.schemes.contains(where: \.traits.signedParameters.mayBeInForm) else { return }
        guard let host = policy.legacyHost else {
            isAllowedAnywhere = true
            return
        }
        hosts.insert(Array(host.utf8))
    }

    /// `host` is as a client wrote it, with or without a port.
    func isAllowed(at host: Span<UInt8>) -> Bool {
        if isAllowedAnywhere { return true }
        guard !hosts.isEmpty else { return false }
        let forms = HostForms(host)
        return hosts.contains(forms.whole) || forms.withoutPort.map { hosts.contains($0) } == true
    }
}
