import CountersignSeal

/// What happens after somebody was asked to show that he is there, and was not. There is no step that goes on without.
public enum PresenceStep: Sendable, Equatable {
    /// Say that it did not work; he may try again.
    case retry
    /// He does not want to, or cannot: the login page.
    case loginPage
    /// The sensor is out of the game: the device's passcode, or the account's password.
    case passcodeOrPassword
}

extension PresenceStep {
    /// What the keychain's status means for who wanted to keep something.
    static func answer(_ status: Int32) -> PresenceAnswer<Void> {
        if status == KeychainStatus.success { return .present(()) }
        return .notPresent(LocalAuthenticationError.step(Int(status)), "keychain: status \(status)")
    }

    /// What a secret or, without one, a code means for who wanted to have it.
    static func answer(_ secret: Secret?, _ code: Int) -> PresenceAnswer<Secret> {
        if let secret { return .present(secret) }
        if code == Int(KeychainStatus.notFound) { return .notPresent(.loginPage, "nothing is kept here") }
        return .notPresent(LocalAuthenticationError.step(code), "code \(code)")
    }
}

/// The codes of LocalAuthentication's `LAError`, and what each leads to. Source: LocalAuthentication/LAError.h.
package enum LocalAuthenticationError {
    /// Every code has its step; one that is unknown, of a system yet to come, leads to the passcode, never in.
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
