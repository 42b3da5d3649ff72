/// What happens after somebody was asked to show that he is there, and was not. There is no step that goes on without.
package enum PresenceStep: Sendable, Equatable {
    /// Say that it did not work; he may try again.
    case retry
    /// He does not want to, or cannot: the login page.
    case loginPage
    /// The sensor is out of the game: the device's passcode, or the account's password.
    case passcodeOrPassword
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
        // passcodeNotSet, biometryNotAvailable, biometryNotEnrolled
        case -5, -6, -7: .loginPage
        // biometryLockout is -8; appCancel, invalidContext, notInteractive and whatever comes
        default: .passcodeOrPassword
        }
    }
}
