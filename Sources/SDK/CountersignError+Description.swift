import CountersignVault

extension CountersignError: CustomStringConvertible {
    /// One line, for a log or a developer; for people an app finds its own words. Some of it is the server's or the backend's.
    public var description: String {
        switch self {
        case .notSignedIn: "nobody is signed in"
        case .signedOut(let end): "the session has ended: \(end)"
        case .accountChanged: "somebody else signed in meanwhile; the request was not sent in his name"
        case .wrongCredentials: "the name or the password is wrong"
        case .unusableName(let detail): "the name: \(detail)"
        case .unusablePassword(let detail): "the password: \(detail)"
        case .refused(let refusal): "refused: \(refusal)"
        case .authorityKeyMissing(let refusal):
            """
            refused, and not verified: \(refusal). The release key has no authority key; expected the `authority_key` that \
            `countersign release add` printed
            """
        case .updateRequired(let url): "the server wants the app's next version" + (url.map { " (\($0))" } ?? "")
        case .presenceNeeded: "the session is locked: it needs a person (`unlock` or `withPresence`); nothing was sent"
        case .notPresent(let step): "no person confirmed to be present; next: \(step.advice)"
        case .transport(let error): error.description
        case .cancelled: "it was cancelled"
        case .bodyUsedUp: "the request's body was sent before, and can be sent once only"
        case .answerTooLarge(let limit): "the answer has over \(limit) bytes"
        case .notGenuine(let detail): "the answer is not to be trusted, and was not acted upon: \(detail)"
        case .notUnderstood(let detail): "the answer is not understood: \(detail)"
        case .certificateNotPinned:
            """
            passwords and tokens go only to a server whose own key the trust enforces, and no rule for this host does: a rule \
            without pins, a rule that only reports, and pins without the check of the host's name do not count. Pin the key, or \
            choose bearerSecrets = .toAnyCertificateThatVerifies
            """
        case .vaultLocked(let detail): "the vault is locked: \(detail)"
        case .vaultFailed(let detail): "the vault: \(detail)"
        case .deviceKeyUnavailable(let detail): "the device's key: \(detail)"
        case .manifest(let problem): problem.description
        case .encoding(let detail): "the value cannot be written as JSON: \(detail)"
        case .decoding(let detail): "the answer is not what was expected: \(detail)"
        case .status(let response, let body): "status \(response.status), with a body of \(body.count) bytes"
        case .intercepted(let error): "an interceptor threw: \(error)"
        case .misuse(let detail), .machine(let detail): detail
        }
    }
}

extension CountersignError.Refusal: CustomStringConvertible {
    /// One line.
    public var description: String {
        var text = code.isEmpty ? "status \(status)" : code
        if !title.isEmpty { text += ": \(title)" }
        if !detail.isEmpty { text += " (\(detail))" }
        if let retryAfter { text += "; try again in \(retryAfter) s" }
        if let event { text += " [\(event)]" }
        return text
    }
}

extension SessionEnd: CustomStringConvertible {
    /// A few words.
    public var description: String {
        switch how {
        case .expired: "it was not used for too long"
        case .replaced(let by): "a login took its place" + (by.map { " (\($0))" } ?? "")
        case .signedOut: "signed out"
        case .revoked: "revoked"
        case .reused: "a key that had been renewed was used again"
        case .passwordChanged: "the password was changed"
        case .disabled: "the account was locked or removed"
        case .restored: "the server was restored from a backup"
        case .deviceKeyLost: "this device's hardware has lost the session's keys"
        case .other(let word): word
        }
    }
}

extension PresenceStep {
    /// What the app does next.
    fileprivate var advice: String {
        switch self {
        case .retry: "let the person try again"
        case .loginPage: "show the login page"
        case .passcodeOrPassword: "ask for the device's passcode or the account's password"
        }
    }
}
