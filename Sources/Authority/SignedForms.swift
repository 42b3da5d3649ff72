import CountersignGate
import CountersignSchemes
import CountersignWire

/// The hosts where some app's policy allows a scheme that signs inside form bodies: nowhere else is a
/// stranger's body read in search of a signature. An app that names its `legacy-host` has its old clients
/// there alone.
struct SignedForms: Sendable {
    private var isAllowedAnywhere = false
    /// As policies have them: lower-case, with a port or without.
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
        let forms = HostForms(host)
        return hosts.contains(forms.whole) || forms.withoutPort.map { hosts.contains($0) } == true
    }
}
