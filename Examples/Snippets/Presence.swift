// Stores secrets that are released only while the user is present.
import CountersignVault

/// On Linux: the password of the user's account. On Apple's platforms use `UserPresence.platform`, where the
/// system shows the prompt.
func presence(askPassword: @escaping @Sendable (String) async -> String?) -> UserPresence {
    .platform(service: "login") { reason in await askPassword(reason) }
}

/// On Linux: a finger, or else the password. The key that a finger opens is in the file.
func presence(
    keyFile path: String, askPassword: @escaping @Sendable (String) async -> String?
) -> UserPresence {
    .platform(service: "login", fingerprintKeyReadableByTheUsersPrograms: path) { reason in
        await askPassword(reason)
    }
}

func recoveryCode(_ presence: UserPresence, in vault: Vault) async throws -> [UInt8]? {
    let name = try ItemName(service: "com.example.app", account: "recovery-code")
    switch try await presence.bytes(name, in: vault, reason: "Show the recovery code") {
    case .present(let code): return code
    case .notPresent(.retry, let why): print("Try again: \(why)")
    case .notPresent(.loginPage, _): print("To the login page")
    case .notPresent(.passcodeOrPassword, _): print("The passcode, or the account's password")
    }
    return nil
}

func keepRecoveryCode(_ code: [UInt8], _ presence: UserPresence, in vault: Vault) async throws
    -> PresenceStep?
{
    let name = try ItemName(service: "com.example.app", account: "recovery-code")
    let kept: PresenceAnswer<Void> = try await presence.setBytes(
        code, at: name, in: vault, reason: "Keep the code")
    if case .notPresent(let step, _) = kept { return step }
    return nil
}

func forgetRecoveryCode(_ presence: UserPresence, in vault: Vault) async throws {
    try await presence.remove(ItemName(service: "com.example.app", account: "recovery-code"), in: vault)
}
