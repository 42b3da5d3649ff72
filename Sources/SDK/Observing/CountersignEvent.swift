import CountersignTransport
import CountersignTrust

/// What a client does, for logs and metrics. Made of what is no secret, and of nothing else: no field, no body, no query, no name
/// and no token has a place in it. Text of the server's is in two of them: in ``judged(_:)`` the names that a certificate is for, and in
/// ``updateAvailable(url:at:)`` an address, whose query and fragment are not printed.
public enum CountersignEvent: Sendable, Hashable {
    /// A call of the client's, with all copies of the request that it takes.
    case began(Call)
    /// A copy goes out; the first one is number 1. From the second on, with why it is sent again.
    case sent(Call, copy: Int, because: Retry?)
    /// It is answered, by the backend or by an interceptor.
    case answered(Call, status: Int, signer: APIResponse.Signer, after: Duration)
    /// It failed.
    case failed(Call, Failure, after: Duration)
    /// The session's key is being renewed; seen once for however many requests wait for it.
    case refreshing
    /// What came of it.
    case refreshed(Refreshed)
    /// The authority's signed word has moved the clock: seconds that the device's own is behind.
    case clockCorrected(offset: Int64)
    /// A server was judged, and not simply accepted: refused, or reported by a rule that only reports.
    case judged(Trust.Verdict)
    /// Another set of pins is in force, and all connections made under the old one are cut.
    case pinsReplaced(version: Int)
    /// The state is another one.
    case state(State)
    /// The device's key is needed, and comes out only with somebody present. Announced for whoever shows the prompt.
    case presenceNeeded
    /// This version of the app will be retired. A hint on any answer, so anybody in between can add or remove it; `at` is in whole
    /// Unix seconds.
    case updateAvailable(url: Link?, at: Int64?)

    /// One call.
    public struct Call: Sendable, Hashable {
        /// Grows by one for each, in this process.
        public let number: Int
        /// What was to be done.
        public let method: APIMethod
        /// Whom it went to.
        public let host: String
        /// Without the query, which may hold anything.
        public let path: String
    }

    /// Why a copy is sent again.
    public enum Retry: Sendable, Hashable {
        /// The answer to the copy before it was lost.
        case lostAnswer
        /// The copy before it was refused, with one of the protocol's codes.
        case refused(code: String)
        /// It failed for now, and was sent again after a wait: ``CountersignOptions/retry``.
        case backOff(Duration)
        /// An interceptor asked again, or it is told otherwise.
        case other
    }

    /// Why a call failed: ``CountersignError``'s cases without what they say.
    public enum Failure: String, Sendable, Hashable {
        /// As ``CountersignError``'s of that name.
        case notSignedIn, signedOut, accountChanged, wrongCredentials, refused, updateRequired
        /// As ``CountersignError``'s of that name; those of its transport apart, by what an app does about them.
        case presenceNeeded, notPresent, offline, timedOut, untrusted, connection, outcomeUnknown, cancelled
        /// As ``CountersignError``'s of that name.
        case bodyUsedUp, answerTooLarge, notGenuine, notUnderstood, certificateNotPinned
        /// As ``CountersignError``'s of that name.
        case vaultLocked, vaultFailed, deviceKeyUnavailable, manifest, encoding, decoding, status, intercepted, misuse,
            machine
    }

    /// What became of a refresh.
    public enum Refreshed: Sendable, Hashable {
        /// The session has a new key and a new token.
        case renewed
        /// Refused; the status.
        case refused(Int)
        /// No answer came.
        case lost
    }

    /// ``CountersignState`` without who it is.
    public enum State: String, Sendable, Hashable {
        /// As ``CountersignState``'s of that name.
        case signedOut, active, locked, unavailable, updateRequired
    }
}
