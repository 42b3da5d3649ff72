import CountersignSeal

/// Passwords that another library kept in the keychain, by service and account as SAMKeychain does, whose place the vault takes.
package struct KeychainRemains: RememberedCredentials {
    private let calls: any KeychainCalls
    private let service: String
    private let target: String

    /// `calls` must see the other library's items; `service` is where it kept them, and `target` where the vault does. They differ:
    /// the vault would else find an item that it has not written.
    package init(_ calls: any KeychainCalls, service: String, to target: String) throws(VaultProblem) {
        guard !service.utf8.elementsEqual(target.utf8) else { throw .badName("\(target): the old service itself") }
        self.calls = calls
        self.service = service
        self.target = target
    }

    package func read() -> Reading<[RememberedCredential]> {
        var remains: [RememberedCredential] = []
        let all = calls.list()
        do {
            try KeychainStatus.check(all.status, "list", absence: .isFine)
            for account in all.names.filter({ $0.service.utf8.elementsEqual(service.utf8) }).map(\.account).sorted() {
                let name = try ItemName(service: service, account: account)
                guard let bytes = try KeychainStatus.reading(calls.copy(name)).certain() else { continue }
                let isText = bytes.withExposedBytes { span in
                    span.firstIllFormedUTF8 == nil
                }
                let target = try ItemName(service: target, account: account)
                remains.append(
                    RememberedCredential(key: account, fate: .move(isText ? .text(bytes) : .bytes(bytes), to: target)))
            }
        } catch {
            return Reading(error)
        }
        return remains.isEmpty ? .absent : .value(remains)
    }

    package func erase(_ remembered: RememberedCredential) throws(VaultProblem) {
        let name = try ItemName(service: service, account: remembered.key)
        try KeychainStatus.check(calls.delete(name), "delete", absence: .isFine)
    }
}
