import CountersignSeal

/// The calls of Apple's keychain that a vault makes, with their bare statuses. What they mean is decided
/// here, where it can be tested.
package protocol KeychainCalls: Sendable {
    /// `SecItemCopyMatching` for one item's bytes.
    func copy(_ name: ItemName) -> (status: Int32, bytes: Secret?)
    /// `SecItemCopyMatching` for the names of all.
    func list() -> (status: Int32, names: [(service: String, account: String)])
    /// `SecItemAdd`.
    func add(_ bytes: Secret, at name: ItemName) -> Int32
    /// `SecItemUpdate`.
    func update(_ bytes: Secret, at name: ItemName) -> Int32
    /// `SecItemDelete`.
    func delete(_ name: ItemName) -> Int32
}

/// What the keychain's statuses mean. Source: Security/SecBase.h.
package enum KeychainStatus {
    package static let success: Int32 = 0
    package static let notFound: Int32 = -25_300
    package static let duplicate: Int32 = -25_299
    /// Closed for now: before the first unlock, behind a locked screen, or not to be asked about without a
    /// person.
    package static let locked: Set<Int32> = [-25_308, -25_293, -25_291]

    package enum Absence: Sendable { case isFine, isWrong }

    static func readResult(_ answer: (status: Int32, bytes: Secret?)) -> VaultReadResult<Secret> {
        switch (answer.status, answer.bytes) {
        case (success, .some(let bytes)): return .value(bytes)
        case (notFound, _): return .absent
        case (let status, _) where locked.contains(status): return .locked("keychain: status \(status)")
        case (let status, _): return .failed("keychain: status \(status)")
        }
    }

    static func check(_ status: Int32, call: String, absence: Absence = .isWrong) throws(VaultError) {
        if status == success || status == notFound && absence == .isFine { return }
        if locked.contains(status) { throw .locked("keychain: \(call): status \(status)") }
        throw .failed("keychain: \(call): status \(status)")
    }
}

/// A vault's items in Apple's keychain, one generic password each.
package struct KeychainStore: ItemStore {
    private let calls: any KeychainCalls

    package init(_ calls: any KeychainCalls) { self.calls = calls }

    package func find(_ name: ItemName) -> VaultReadResult<Secret> {
        KeychainStatus.readResult(calls.copy(name))
    }

    package func names() throws(VaultError) -> [ItemName] {
        let answer = calls.list()
        try KeychainStatus.check(answer.status, call: "list", absence: .isFine)
        var names: [ItemName] = []
        for name in answer.names { names.append(try ItemName(service: name.service, account: name.account)) }
        return names
    }

    /// An update leaves the old bytes or the new; to delete and add would leave none.
    package func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
        var status = calls.update(bytes, at: name)
        if status == KeychainStatus.notFound {
            status = calls.add(bytes, at: name)
            if status == KeychainStatus.duplicate { status = calls.update(bytes, at: name) }
        }
        try KeychainStatus.check(status, call: "write")
    }

    package func remove(_ name: ItemName) throws(VaultError) {
        try KeychainStatus.check(calls.delete(name), call: "delete", absence: .isFine)
    }
}
