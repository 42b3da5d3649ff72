import Countersign

/// The sentences that the app shows. A translated app has them in its string catalogue.
enum Messages {
    /// The sentence for an error; nil if the next screen explains it.
    static func text(for error: CountersignError) -> String? {
        switch error {
        case .signedOut, .accountChanged, .updateRequired, .presenceNeeded, .cancelled:
            nil
        case .notSignedIn:
            "Sign in first."
        case .wrongCredentials:
            "The name or the password is wrong."
        case .unusableName(let reason), .unusablePassword(let reason):
            "This cannot be used: \(reason)."
        case .refused(let refusal):
            "\(refusal.title)." + (refusal.retryAfter.map { " Try again in \($0) seconds." } ?? "")
        case .notPresent(.retry):
            "That was not recognised. Try again."
        case .notPresent(.passcodeOrPassword):
            "Use the passcode of this device, or sign in with your password."
        case .notPresent(.loginPage):
            "Sign in with your password."
        case .transport(let error):
            text(for: error)
        case .vaultLocked:
            "Your data on this device is locked. Unlock the device, and try again."
        case .status(let response, _):
            "The server could not do this (status \(response.status))."
        default:
            // A mistake in the app, its settings or the backend: the text is for the app's developers.
            "This did not work: \(error)."
        }
    }

    /// Why the user must sign in again; nil if the device had no session.
    static func notice(for reason: CountersignState.SignedOutReason) -> String? {
        guard case .ended(let end) = reason else { return nil }
        return switch end.how {
        case .signedOut: "You signed out."
        case .expired: "You were away for a long time. Sign in again."
        case .replaced(let kind):
            "You signed in on another device (\(kind ?? "of unknown kind")). This one was signed out."
        case .revoked: "An administrator ended your session."
        case .reused:
            "A copy of your session was used. Sign in again, and change your password."
        case .passwordChanged: "Your password was changed. Sign in with the new one."
        case .disabled: "Your account is locked."
        case .restored, .deviceKeyLost, .other: "Sign in again."
        case .never: "Sign in."
        }
    }

    private static func text(for error: TransportError) -> String {
        switch (error.cause, error.fate) {
        case (.untrusted, _):
            "This is not the server that the app was made for. Nothing was sent."
        case (_, .outcomeUnknown), (_, .brokenOff):
            "The connection was lost, and it is not known whether this was done. Look before you try again."
        case (.offline, _):
            "You are offline."
        default:
            "The server cannot be reached. Try again later."
        }
    }
}
