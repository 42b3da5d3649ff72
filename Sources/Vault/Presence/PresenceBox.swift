import CountersignSeal

/// A secret that opens only with a person present: sealed with a key of its own, which is kept twice, under the person's password
/// and, where the machine has a TPM, under that. It holds no answer "is present" that somebody could turn round.
///
/// `1 ‖ length (2) ‖ key under the password ‖ length (2) ‖ key under the TPM ‖ sealed secret`; a length of 0 where there is no TPM.
struct PresenceBox {
    private static let layout: UInt8 = 1

    let underPassword: [UInt8]
    /// Nil on a machine without a TPM: there a finger opens nothing, for nothing would hold the key back from who has no finger.
    let underTPM: [UInt8]?
    private let sealed: [UInt8]
    private let binding: SealBinding

    private static func binding(_ name: ItemName) -> SealBinding {
        SealBinding(kind: "presence", app: name.service, row: name.account)
    }

    init(_ secret: Secret, for name: ItemName, password: any KeyGuard, tpm: (any KeyGuard)?) throws(VaultProblem) {
        let key = MasterKey.random()
        guard let master = MasterKey(key) else { throw .failed("libsodium is not ready") }
        binding = PresenceBox.binding(name)
        underPassword = try password.seal(key)
        if let tpm { underTPM = try tpm.seal(key) } else { underTPM = nil }
        sealed = master.seal(secret, as: binding)
    }

    /// Nil where `bytes` were not written by ``bytes``.
    init?(_ bytes: [UInt8], for name: ItemName) {
        var rest = bytes.dropFirst()
        guard bytes.first == PresenceBox.layout, let password = PresenceBox.part(&rest),
            let tpm = PresenceBox.part(&rest)
        else { return nil }
        underPassword = password
        underTPM = tpm.isEmpty ? nil : tpm
        sealed = Array(rest)
        binding = PresenceBox.binding(name)
    }

    var bytes: [UInt8] {
        [PresenceBox.layout] + PresenceBox.counted(underPassword) + PresenceBox.counted(underTPM ?? []) + sealed
    }

    /// Nil where `key` is another's.
    func open(_ key: Secret) -> Secret? {
        guard let master = MasterKey(key) else { return nil }
        return try? master.open(sealed, as: binding)
    }

    private static func counted(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }

    private static func part(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
        guard rest.count >= 2 else { return nil }
        let count = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}
