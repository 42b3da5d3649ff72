import CountersignGate
import CountersignSchemes
import CountersignWire

/// The hosts where some app's policy allows a scheme that signs inside form bodies: nowhere else is a
/// stranger's body read in search of a signature. An app that names its `legacy-host` has its old clients
/// there alone.
struct SignedForms: Sendable {
    private var isAllowedAnywhere = false
    /// Lower-case, without a port.
    private var hosts: Set<[UInt8]> = []

    mutating func add(_ policy: Policy) {
        guard policy.schemes.contains(where: \.signsParameters) else { return }
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
        var name: [UInt8] = []
        for index in 0..<host.count { name.append(ASCII.lowercased(host[index])) }
        if let colon = name.lastIndex(of: UInt8(ascii: ":")), name.last != UInt8(ascii: "]") {
            name.removeSubrange(colon...)
        }
        return hosts.contains(name)
    }
}
