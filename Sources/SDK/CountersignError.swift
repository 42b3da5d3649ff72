import CountersignTransport
import CountersignVault

/// Why a call failed. Each case needs another reaction.
///
/// A backend's own HTTP status of 400 and above is not an error here: it is a response, and comes with its
/// body.
public enum CountersignError: Error, Sendable {
    /// No account is signed in on this device. Nothing was sent.
    case notSignedIn
    /// The authority has ended the session. ``CountersignClient/states`` reports it, too.
    case signedOut(SessionEnd)
    /// Another account signed in during the request or, at a change of password, the same account signed in
    /// again. The request was not sent in the name of the new login.
    case accountChanged
    /// The name or the password is wrong.
    case wrongCredentials
    /// The text cannot be an account name: the reason, for people.
    case unusableName(String)
    /// The text cannot be a password: the reason, for people.
    case unusablePassword(String)
    /// The authority refused the request. Nothing changed on this device.
    case refused(Refusal)
    /// The server refused, and signed the refusal with its authority key, which this client does not have: it
    /// cannot tell the refusal from a forged one, and did not act on it. Pass ``ReleaseKey``'s
    /// `authorityKey`.
    case authorityKeyMissing(Refusal)
    /// The authority no longer serves this version. Until ``CountersignClient/continueDespiteUpdate()`` the
    /// client sends nothing.
    case updateRequired(url: String?)
    /// The operation needs the device's key, which is available only in
    /// ``CountersignClient/withPresence(_:_:)``. Nothing was sent.
    case presenceNeeded
    /// The system asked the user to confirm their presence, and the user did not.
    case notPresent(PresenceStep)
    /// There is no response, or not all of it: offline, timed out, not trusted… The error's `fate` says what
    /// became of the request; with `outcomeUnknown` the server may have executed it, even if the last
    /// copy of it was not sent.
    case transport(TransportError)
    /// The task was cancelled. The server may have executed what was already sent.
    case cancelled
    /// The request must be sent again, but its body can be sent only once, and was sent.
    case bodyUsedUp
    /// The response has more bytes than the limit. The server has executed the request.
    case answerTooLarge(limit: Int)
    /// A response came that is not the authority's, or does not belong to this request. The client did not
    /// act on it.
    case notGenuine(String)
    /// This version does not understand the authority's response.
    case notUnderstood(String)
    /// A password or a bearer token would go to a certificate that is not pinned. Nothing was sent.
    case certificateNotPinned
    /// The vault is locked for now and opens again later: a keychain before the first unlock. Nothing
    /// changed.
    case vaultLocked(String)
    /// The vault failed. The app must not conclude anything from it.
    case vaultFailed(String)
    /// The device's keys are in hardware that cannot be used now, or hardware is required and absent; the
    /// reason, for people. Nothing changed: another attempt may succeed, and a login makes other keys if
    /// ``CountersignOptions/deviceKeyStorage`` allows that. Hardware that has lost the keys for good ends the
    /// session instead (``SessionEnd/How-swift.enum/deviceKeyLost``).
    case deviceKeyUnavailable(String)
    /// A set of pins was rejected. The pins in force stay in force.
    case manifest(ManifestError)
    /// A value cannot be encoded as JSON. Nothing was sent.
    case encoding(String)
    /// A response cannot be decoded: where, and what was expected. The server has executed the request.
    case decoding(String)
    /// A response with another status than 200 to 299, where a value was to be decoded.
    case status(APIResponse, body: [UInt8])
    /// An interceptor threw this.
    case intercepted(any Error)
    /// The call can never succeed: a URL of another server, a field that the app may not set, an invalid key.
    case misuse(String)
    /// The machine or one of its libraries failed.
    case machine(String)

    /// A refusal in the authority's words. Source: docs/protocol.md, "Answers"; RFC 9457.
    public struct Refusal: Error, Sendable, Hashable {
        /// Of HTTP.
        public let status: Int
        /// Stable, for programs: `name-taken`, `too-many-attempts`, `forbidden`…; empty if the response has
        /// none.
        public let code: String
        /// For people.
        public let title: String
        /// For the app's developers.
        public let detail: String
        /// The event's id in the server's log.
        public let event: String?
        /// Seconds after which another attempt is worthwhile.
        public let retryAfter: Int?
        /// Whether the authority is known to have said this, now and to this request. A refusal that any
        /// party in between could have made is reported, and the client does not act on it.
        public let isGenuine: Bool
    }
}

extension CountersignError {
    /// The machine has no network connection. Another attempt is worthwhile once it has. ``isUnreachable``
    /// covers this, and a server that cannot be reached for another reason.
    public var isOffline: Bool {
        guard case .transport(let error) = self, case .offline = error.cause else { return false }
        return true
    }

    /// No byte of the request was sent, and another attempt may succeed: the machine is offline, the name is
    /// not found, or no connection was made (refused, not in time, without TLS, cut by new pins). False for a
    /// server that is not trusted, and wherever the request may have been received.
    public var isUnreachable: Bool {
        guard case .transport(let error) = self, error.fate == .notSent else { return false }
        return error.isPassing
    }

    /// The request timed out.
    public var isTimeout: Bool {
        guard case .transport(let error) = self, case .timedOut = error.cause else { return false }
        return true
    }

    /// The request was sent, and whether the server executed it is not known. The app checks before it
    /// repeats the request, or repeats it with the same ``APIRequest/idempotencyKey``.
    public var isOutcomeUnknown: Bool {
        guard case .transport(let error) = self else { return false }
        return error.fate == .outcomeUnknown
    }

    init(_ error: TransportError) {
        self =
            switch error.cause {
            case .cancelled: .cancelled
            case .bodyUsedUp: .bodyUsedUp
            case .answerTooLarge(let limit): .answerTooLarge(limit: limit)
            case .malformedRequest(let detail): .misuse(detail)
            case .machine(let detail): .machine(detail)
            default: .transport(error)
            }
    }
}

extension CountersignError: CustomStringConvertible {
    /// One line, for a log or a developer; an app has its own words for users. Parts of it may come from the
    /// server or the backend.
    public var description: String {
        switch self {
        case .notSignedIn: "no account is signed in"
        case .signedOut(let end): "the session has ended: \(end)"
        case .accountChanged: "another account signed in meanwhile; the request was not sent in its name"
        case .wrongCredentials: "the name or the password is wrong"
        case .unusableName(let detail): "the name: \(detail)"
        case .unusablePassword(let detail): "the password: \(detail)"
        case .refused(let refusal): "refused: \(refusal)"
        case .authorityKeyMissing(let refusal):
            """
            refused, and not verified: \(refusal). The release key has no authority key; expected the \
            `authority_key` that `countersign release add` printed
            """
        case .updateRequired(let url):
            "the server requires a newer version of the app" + (url.map { " (\($0))" } ?? "")
        case .presenceNeeded:
            """
            the session is locked until the user confirms their presence (`unlock` or `withPresence`); \
            nothing was sent
            """
        case .notPresent(let step): "the user did not confirm their presence; next: \(step.advice)"
        case .transport(let error): error.description
        case .cancelled: "the task was cancelled"
        case .bodyUsedUp: "the request's body can be sent only once, and was sent before"
        case .answerTooLarge(let limit): "the response has more than \(limit) bytes"
        case .notGenuine(let detail):
            "the response is not to be trusted, and the client did not act on it: \(detail)"
        case .notUnderstood(let detail): "the response is not understood: \(detail)"
        case .certificateNotPinned:
            """
            passwords and tokens go only to a server whose own key the trust enforces, and no rule for this \
            host does: a rule without pins, a rule that only reports, and pins without the check of the \
            host's name do not count. Pin the key, or choose bearerSecrets = .toAnyCertificateThatVerifies
            """
        case .vaultLocked(let detail): "the vault is locked: \(detail)"
        case .vaultFailed(let detail): "the vault failed: \(detail)"
        case .deviceKeyUnavailable(let detail): "the device's key cannot be used: \(detail)"
        case .manifest(let problem): problem.description
        case .encoding(let detail): "the value cannot be encoded as JSON: \(detail)"
        case .decoding(let detail): "the response cannot be decoded: \(detail)"
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
        case .replaced(let by): "another login replaced it" + (by.map { " (\($0))" } ?? "")
        case .signedOut: "signed out"
        case .revoked: "revoked"
        case .reused: "a key that had been renewed was used again"
        case .passwordChanged: "the password was changed"
        case .disabled: "the account was locked or removed"
        case .restored: "the server was restored from a backup"
        case .deviceKeyLost: "this device's hardware has lost the session's keys"
        case .never: "no user has signed in"
        case .other(let word): word
        }
    }
}

extension PresenceStep {
    /// What the app does next.
    fileprivate var advice: String {
        switch self {
        case .retry: "let the user try again"
        case .loginPage: "show the login page"
        case .passcodeOrPassword: "ask for the device's passcode or the account's password"
        }
    }
}
