import CountersignTransport
import CountersignVault

/// Why an app did not get what it asked for. Each case is another thing to do.
///
/// An HTTP status of 400 and above is no error here where it is the backend's own: it is an answer, and comes with its body.
public enum CountersignError: Error, Sendable {
    /// Nobody is signed in here. Nothing was sent.
    case notSignedIn
    /// The authority has ended the session. ``CountersignClient/states`` says so, too.
    case signedOut(SessionEnd)
    /// Somebody else signed in while the request was under way, or, at a change of password, the same person anew. It was not
    /// sent in his name.
    case accountChanged
    /// The name or the password is wrong.
    case wrongCredentials
    /// What was typed can be nobody's name: why, for people.
    case unusableName(String)
    /// What was typed can be no password: why, for people.
    case unusablePassword(String)
    /// The authority said no. Nothing changed here.
    case refused(Refusal)
    /// The server refused, and signed that with its authority key, which this client was not given: it cannot tell the
    /// refusal from a forged one, and did not act on it. Pass ``ReleaseKey``'s `authorityKey`.
    case authorityKeyMissing(Refusal)
    /// The authority serves this version no more. Until ``CountersignClient/continueDespiteUpdate()`` nothing is sent.
    case updateRequired(url: String?)
    /// The step needs the device's key, which comes out only in ``CountersignClient/withPresence(_:_:)``. Nothing was sent.
    case presenceNeeded
    /// A person was asked to show that he is there, and did not.
    case notPresent(PresenceStep)
    /// There is no answer, or not all of it: offline, timed out, not trusted… What became of the request stands in the error's
    /// `fate`; with `outcomeUnknown` it may have been done, and was not sent again.
    case transport(TransportError)
    /// The task was cancelled. What was already sent may have been done.
    case cancelled
    /// The request's body can be sent once only, and was; it would have to be sent again.
    case bodyUsedUp
    /// The answer has more bytes than were wanted. The request was done.
    case answerTooLarge(limit: Int)
    /// An answer came that the authority did not give, or not to this request. It was not acted upon.
    case notGenuine(String)
    /// The authority's answer is none that this version understands.
    case notUnderstood(String)
    /// A password, or a token that whoever reads it can use, would go to a certificate that was not pinned. Nothing was sent.
    case certificateNotPinned
    /// The vault is closed for now, and opens again: a keychain before the first unlock. Nothing changed.
    case vaultLocked(String)
    /// The vault does not do what was asked. Nothing may be concluded from it.
    case vaultFailed(String)
    /// The device's keys are in hardware that cannot be used now, or hardware is demanded and there is none;
    /// why, for people. Nothing changed: another attempt may succeed, and a login makes other keys where
    /// ``CountersignOptions/deviceKeyStorage`` allows that. Hardware that has lost the keys for good ends the
    /// session instead (``SessionEnd/How-swift.enum/deviceKeyLost``).
    case deviceKeyUnavailable(String)
    /// A set of pins that was not taken up. What was in force stays in force.
    case manifest(ManifestProblem)
    /// A value that is not sent, for JSON cannot say it.
    case encoding(String)
    /// An answer that is not what was to be read from it: where, and what was expected. The request was done.
    case decoding(String)
    /// An answer of another status than 200 to 299, where a value was to be read from it.
    case status(APIResponse, body: [UInt8])
    /// An interceptor threw this.
    case intercepted(any Error)
    /// What was asked for cannot be done, whoever asks: a URL of another server, a field that may not be given, a key that is none.
    case misuse(String)
    /// The machine or one of its libraries failed.
    case machine(String)

    /// A refusal in the authority's words. Source: docs/protocol.md, "Answers"; RFC 9457.
    public struct Refusal: Error, Sendable, Hashable {
        /// Of HTTP.
        public let status: Int
        /// Stable, for programs: `name-taken`, `too-many-attempts`, `forbidden`…; empty where the answer has none.
        public let code: String
        /// For people.
        public let title: String
        /// For people who build the app.
        public let detail: String
        /// The event's id, to be found in the server's log.
        public let event: String?
        /// Seconds after which it is worth another try.
        public let retryAfter: Int?
        /// Whether the authority is known to say it, now and to this request. What anybody in between could have said is shown,
        /// and nothing follows from it.
        public let isGenuine: Bool
    }
}

extension CountersignError {
    /// The machine has no way out. What was asked for is worth another try once it has. ``isUnreachable`` covers
    /// this, and a server that cannot be reached for another reason.
    public var isOffline: Bool {
        guard case .transport(let error) = self, case .offline = error.cause else { return false }
        return true
    }

    /// No byte of the request was sent, and another attempt may succeed: the machine is offline, the name is not
    /// found, or no connection was made (refused, not in time, without TLS, cut by new pins). False for a server
    /// that is not trusted, and wherever the request may have been received.
    public var isUnreachable: Bool {
        guard case .transport(let error) = self, error.fate == .notSent else { return false }
        return error.isPassing
    }

    /// It took too long.
    public var isTimeout: Bool {
        guard case .transport(let error) = self, case .timedOut = error.cause else { return false }
        return true
    }

    /// It was sent, and whether it was done is not known. It is for the app to look before it asks again, or to ask again with the
    /// same ``APIRequest/idempotencyKey``.
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
