import CountersignSeal

/// How a person proves to be present, and what is released only then.
///
/// It is a secret that opens, not an answer `true` that an attacker could change. Nothing proceeds without a
/// person: without an enrolled finger the person is asked for the passcode or the password, and if none of
/// these exists, nothing is stored.
public struct UserPresence: Sendable {
    private let provider: any PresenceProvider

    package init(_ means: any PresenceProvider) { self.provider = means }

    /// Stores bytes in place of the current ones; `reason` is shown to the person if one is asked. `present`
    /// once they are stored. Throws if the vault cannot store them.
    public func setBytes(
        _ bytes: [UInt8], at name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultError) -> PresenceAnswer<Void> {
        try await provider.bind(Secret(copying: bytes.span), to: name, in: vault, reason: reason)
    }

    /// The bytes, after the person has proved to be present; `reason` is shown meanwhile. Throws if the vault
    /// cannot be read. The returned copy is not wiped: use it briefly.
    public func bytes(
        _ name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultError) -> PresenceAnswer<[UInt8]> {
        switch try await secret(name, in: vault, reason: reason) {
        case .present(let secret): .present(secret.withExposedBytes { span in span.indices.map { span[$0] } })
        case .notPresent(let step, let detail): .notPresent(step, detail)
        }
    }

    /// Erases the secret. Does not ask the person.
    public func remove(_ name: ItemName, in vault: Vault) async throws(VaultError) {
        try await provider.forget(name, in: vault)
    }

    package func setSecret(
        _ secret: Secret, at name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultError) -> PresenceAnswer<Void> {
        try await provider.bind(secret, to: name, in: vault, reason: reason)
    }

    package func secret(
        _ name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultError) -> PresenceAnswer<Secret> {
        try await provider.release(name, from: vault, reason: reason)
    }
}

/// The result of a request to prove presence.
public enum PresenceAnswer<Value: Sendable>: Sendable {
    /// The person is present; the value was released.
    case present(Value)
    /// The person did not prove to be present: the next step, and a reason for people.
    case notPresent(PresenceStep, String)
}

/// What a machine has for it. Waits as long as a person takes.
package protocol PresenceProvider: Sendable {
    func bind(
        _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultError) -> PresenceAnswer<Void>

    func release(
        _ name: ItemName, from vault: Vault, reason: String
    ) async throws(VaultError) -> PresenceAnswer<Secret>

    func forget(_ name: ItemName, in vault: Vault) async throws(VaultError)
}

/// The next step after a failed proof of presence. No step proceeds without a person.
public enum PresenceStep: Sendable, Equatable {
    /// Report the failure; the person may try again.
    case retry
    /// The person refuses, or cannot: show the login page.
    case loginPage
    /// The sensor is unavailable: the device's passcode, or the account's password.
    case passcodeOrPassword
}

extension PresenceStep {
    /// The result of storing, from the keychain's status.
    static func answer(status: Int32) -> PresenceAnswer<Void> {
        if status == KeychainStatus.success { return .present(()) }
        return .notPresent(LocalAuthenticationCode.step(Int(status)), "keychain: status \(status)")
    }

    /// The result of reading, from a secret or, without one, a code.
    static func answer(secret: Secret?, code: Int) -> PresenceAnswer<Secret> {
        if let secret { return .present(secret) }
        if code == Int(KeychainStatus.notFound) { return .notPresent(.loginPage, "nothing is kept here") }
        return .notPresent(LocalAuthenticationCode.step(code), "code \(code)")
    }
}

/// The codes of LocalAuthentication's `LAError`, and what each leads to. Source:
/// LocalAuthentication/LAError.h.
package enum LocalAuthenticationCode {
    /// Every code has its step; one that is unknown, of a system yet to come, leads to the passcode, never
    /// in.
    package static func step(_ code: Int) -> PresenceStep {
        switch code {
        // authenticationFailed
        case -1: .retry
        // userCancel, userFallback, systemCancel
        case -2, -3, -4: .loginPage
        // errSecUserCanceled, the keychain's own. Source: Security/SecBase.h
        case -128: .loginPage
        // passcodeNotSet, biometryNotAvailable, biometryNotEnrolled
        case -5, -6, -7: .loginPage
        // biometryLockout is -8; appCancel, invalidContext, notInteractive and whatever comes
        default: .passcodeOrPassword
        }
    }
}

/// A reader of fingerprints.
package protocol FingerprintReader: Sendable {
    /// Waits for a finger, `patience` at most. Blocks its thread.
    func verify(within patience: Duration) -> FingerprintVerdict
}

package enum FingerprintVerdict: Sendable, Equatable {
    case match
    /// A finger, and not an enrolled one.
    case noMatch
    /// No reader, no enrolled finger, no answer; for people.
    case unavailable(String)
}

/// Checks that a person knows the password of the account on this machine.
package protocol PasswordCheck: Sendable {
    /// `ask` is called when the password is needed, and gives nil where the person gives up. Blocks its
    /// thread.
    func verify(_ ask: @escaping @Sendable () -> Secret?) -> PasswordVerdict
}

package enum PasswordVerdict: Sendable {
    /// With what was typed, since that opens the key.
    case accepted(Secret)
    case refused(String)
    case givenUp
    /// Nothing can be checked here, or no longer: too many attempts, an account that has ended.
    case unavailable(String)
}
