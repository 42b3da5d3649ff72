import CountersignMemory
import CountersignTransport
import CountersignTrust

/// What a client does, for logs and metrics. It holds nothing secret: no field, body, query, name or token.
/// Two events hold text of the server: ``judged(_:)`` the names of a certificate, and
/// ``updateAvailable(url:at:)`` an address, whose query and fragment are not printed.
public enum CountersignEvent: Sendable, Hashable {
    /// A call of the client's, with all copies of the request that it takes.
    case began(Call)
    /// The client sends a copy; the first one is number 1. From the second on, with the reason of the
    /// repetition.
    case sent(Call, copy: Int, because: Retry?)
    /// The call got a response, from the backend or from an interceptor.
    case answered(Call, status: Int, signer: APIResponse.Signer, after: Duration)
    /// It failed.
    case failed(Call, Failure, after: Duration)
    /// The client is renewing the session's key; reported once for all requests that wait for it.
    case refreshing
    /// The result of the refresh.
    case refreshed(Refreshed)
    /// A signed response of the authority has moved the clock: seconds by which the device's own is behind.
    case clockCorrected(offset: Int64)
    /// The trust judged a server and did not simply accept it: refused, or reported by a rule that only
    /// reports.
    case judged(Trust.Verdict)
    /// Another set of pins is in force, and all connections made under the old one are cut.
    case pinsReplaced(version: Int)
    /// The stored set of pins was not adopted at the launch, because none of the built-in keys has signed it
    /// or it is damaged; the built-in set is in force. Reported while the client is made, so only the log
    /// sees it;
    /// ``CountersignClient/discardedPins`` has it for the app.
    case pinsDiscarded(ManifestError)
    /// The state has changed.
    case state(State)
    /// The device's key is needed and is released only when the user is present. For the code that shows the
    /// prompt.
    case presenceNeeded
    /// This version of the app will be retired. A hint on any response, so any party in between can add or
    /// remove it; `at` is in whole Unix seconds.
    case updateAvailable(url: Link?, at: Int64?)

    /// One call.
    public struct Call: Sendable, Hashable {
        /// Increases by one for each call in this process.
        public let number: Int
        /// The request's method.
        public let method: APIMethod
        /// The host of the request.
        public let host: String
        /// Without the query, which may hold anything.
        public let path: String
    }

    /// Why the client sends another copy.
    public enum Retry: Sendable, Hashable {
        /// The response to the copy before it was lost.
        case lostAnswer
        /// The server refused the copy before it, with one of the protocol's codes.
        case refused(code: String)
        /// A temporary failure; sent again after a wait: ``CountersignOptions/retry``.
        case backOff(Duration)
        /// An interceptor repeated the request, or the reason is another.
        case other
    }

    /// Why a call failed: ``CountersignError``'s cases without their details.
    public enum Failure: String, Sendable, Hashable {
        /// As ``CountersignError``'s of that name.
        case notSignedIn, signedOut, accountChanged, wrongCredentials, refused, updateRequired
        /// As ``CountersignError``'s of that name; its transport errors are separated by what an app does
        /// about them.
        case presenceNeeded, notPresent, offline, timedOut, untrusted, connection, outcomeUnknown, cancelled
        /// As ``CountersignError``'s of that name.
        case bodyUsedUp, answerTooLarge, notGenuine, notUnderstood, certificateNotPinned
        /// As ``CountersignError``'s of that name.
        case vaultLocked, vaultFailed, deviceKeyUnavailable, manifest, encoding, decoding, status,
            intercepted, misuse,
            machine
    }

    /// The result of a refresh.
    public enum Refreshed: Sendable, Hashable {
        /// The session has a new key and a new token.
        case renewed
        /// Refused; the status.
        case refused(Int)
        /// No response came.
        case lost
    }

    /// ``CountersignState`` without the account.
    public enum State: String, Sendable, Hashable {
        /// As ``CountersignState``'s of that name.
        case signedOut, active, locked, unavailable, updateRequired
    }
}

extension CountersignEvent {
    /// An address from a server. Its description leaves out the query and the fragment, which may hold
    /// anything.
    public struct Link: Sendable, Hashable {
        /// The whole address, to be opened.
        public let url: String

        /// From its text.
        public init(_ url: String) { self.url = url }
    }
}

extension CountersignEvent.Link: CustomStringConvertible, CustomReflectable {
    /// The address, to its path's end.
    public var description: String { String(url.prefix { $0 != "?" && $0 != "#" }) }

    /// A dump shows no more than a log does.
    public var customMirror: Mirror { Mirror(self, children: ["url": description]) }
}

/// Names a client's calls in its events.
final class CallNames: Sendable {
    private let host: String
    private let count = Locked(0)

    init(host: String) { self.host = host }

    /// The next call's name, without the query, which may hold anything.
    func next(_ method: APIMethod, path: String) -> CountersignEvent.Call {
        let number = count.with { count in
            count += 1
            return count
        }
        let end = path.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let bare = end.map { String(path[..<$0]) } ?? path
        return CountersignEvent.Call(number: number, method: method, host: host, path: bare)
    }
}
