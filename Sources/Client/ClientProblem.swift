import CountersignVault

/// Why a client did not get what it asked for. Each case is another thing to do.
package enum ClientProblem: Error, Sendable {
    /// Nobody is signed in here.
    case notSignedIn
    /// The session is over, by the authority's own word; nothing of it is kept here any more.
    case sessionEnded(Notice)
    /// The name or the password is wrong, or the device's clock is.
    case wrongCredentials
    /// The server said no. Nothing changed here.
    case refused(Notice)
    /// Somebody else signed in while it was under way, or, where it is of one session, the same person anew. It was not sent as his.
    case accountChanged
    /// Nothing was sent.
    case unreachable(TransportProblem)
    /// It was sent, and what became of it is not known. Nothing was sent twice.
    case outcomeUnknown(TransportProblem)
    /// An answer began and broke off.
    case brokenOff(TransportProblem)
    /// Whoever waited was cancelled. Nothing of his was sent.
    case cancelled
    /// An answer came that the authority did not give, or not to this request. It was not acted upon.
    case notGenuine(String)
    /// The authority's answer is none that this build understands.
    case notUnderstood(String)
    /// Something that is needed is not known here.
    case incomplete(String)
    /// A password, or a token that whoever reads it can use, would go to a certificate that was not named for this server. Nothing was
    /// sent. See ``Installation/bearerSecrets``.
    case certificateNotPinned
    /// It takes the device's signing key, which is bound to presence, and nobody is there. Nothing was changed; what was begun goes on
    /// where somebody is.
    case presenceNeeded
    /// A login's key was to be bound, and nobody showed that he is there. Nobody was signed in.
    case notPresent(PresenceStep)
    /// The device's keys are in hardware that cannot be used now, or that was demanded and is not there; for
    /// people. Nothing changed. Another attempt may succeed, and a login makes other keys where it may.
    case deviceKeyUnavailable(String)
    /// The device's keys are lost for good, and with them the session: it has ended on this device. Only a
    /// login helps. For people.
    case deviceKeyLost(String)
    /// The refusal that it met is mended, but its body can be sent once only, and was, in part or whole. With another body the
    /// request would be let in.
    case bodyUsedUp
    /// The vault is closed for now, and opens again. Nothing changed.
    case vaultLocked(String)
    /// The vault does not do what was asked. Nothing may be concluded from it.
    case vaultFailed(String)
    /// The machine's libraries, or its memory, failed.
    case machine(String)
}

extension ClientProblem {
    init(_ problem: TransportProblem) {
        self =
            switch problem.fate {
            case .notSent: .unreachable(problem)
            case .notKnown: .outcomeUnknown(problem)
            case .brokenOff: .brokenOff(problem)
            }
    }

    init(_ problem: VaultProblem) {
        self =
            switch problem {
            case .locked(let detail): .vaultLocked(detail)
            case .failed(let detail), .badName(let detail): .vaultFailed(detail)
            case .changed: .vaultFailed("somebody else wrote to the vault")
            }
    }
}

extension ClientProblem {
    init(_ error: DeviceKeyError) {
        self =
            switch error {
            case .unavailable(let detail): .deviceKeyUnavailable(detail)
            case .lost(let detail): .deviceKeyLost(detail)
            case .badPoint: .notUnderstood("token: ephemeral: expected a point on P-256")
            }
    }
}

/// A refusal as the server wrote it: problem details with a stable code. Source: docs/protocol.md, "Answers"; RFC 9457.
package struct Notice: Sendable, Equatable {
    package var status: Int
    /// `session-ended`, `too-many-attempts`, …; empty where the answer has none.
    package var code = ""
    package var title = ""
    package var detail = ""
    /// The event's id, to be found in the log.
    package var instance: String?
    /// Seconds after which it is worth another try.
    package var retryAfter: Int?
    /// `stale`: the server's time, Unix seconds.
    package var time: Int64?
    /// `session-ended`: how, since when, and which class of device took its place.
    package var reason: String?
    package var at: Int64?
    package var by: String?
    package var updateURL: String?
    /// Whether the authority is known to say it, now and to this request. One that is not is shown, and nothing follows from it.
    package internal(set) var isGenuine = false
    /// What a genuine `stale` teaches: the time at the authority, Unix seconds.
    var timeTold: Int64?

    package init(status: Int) { self.status = status }
}
