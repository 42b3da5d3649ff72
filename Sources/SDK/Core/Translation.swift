import CountersignClient
import CountersignTransport
import CountersignVault
import CountersignWire

extension CountersignError {
    /// The state machine's problem, in an app's terms.
    package init(_ problem: ClientProblem) {
        self =
            switch problem {
            case .notSignedIn: .notSignedIn
            case .sessionEnded(let notice): .signedOut(SessionEnd(notice))
            case .accountChanged: .accountChanged
            case .wrongCredentials: .wrongCredentials
            case .refused(let notice): CountersignError(notice)
            case .unreachable(let problem), .outcomeUnknown(let problem), .brokenOff(let problem):
                CountersignError(problem)
            case .cancelled: .cancelled
            case .notGenuine(let detail): .notGenuine(detail)
            case .notUnderstood(let detail): .notUnderstood(detail)
            case .incomplete(let detail): .misuse(detail)
            case .certificateNotPinned: .certificateNotPinned
            case .presenceNeeded: .presenceNeeded
            case .notPresent(let step): .notPresent(step)
            case .bodyUsedUp: .bodyUsedUp
            case .vaultLocked(let detail): .vaultLocked(detail)
            case .vaultFailed(let detail): .vaultFailed(detail)
            case .deviceKeyUnavailable(let detail): .deviceKeyUnavailable(detail)
            case .deviceKeyLost: .signedOut(SessionEnd(.deviceKeyLost))
            case .machine(let detail): .machine(detail)
            }
    }

    private init(_ problem: TransportProblem) {
        if let error = problem.underlying as? TransportError {
            self.init(error)
            return
        }
        let fate: TransportError.Fate =
            switch problem.fate {
            case .notSent: .notSent
            case .notKnown: .outcomeUnknown
            case .brokenOff: .brokenOff
            }
        self = .transport(TransportError(.connectionLost(problem.detail), fate))
    }

    /// What a vault says.
    init(_ problem: VaultProblem) {
        self =
            switch problem {
            case .locked(let detail): .vaultLocked(detail)
            case .failed(let detail), .badName(let detail): .vaultFailed(detail)
            case .changed: .vaultFailed("somebody else wrote to the vault")
            }
    }

    /// A refusal. What the authority is not known to have said about the version is shown, and not acted upon.
    init(_ notice: Notice) {
        if notice.isGenuine, notice.code == CountersignWire.Refusal.Code.updateRequired.rawValue {
            self = .updateRequired(url: notice.updateURL)
        } else {
            self = .refused(Refusal(notice))
        }
    }
}

extension CountersignError.Refusal {
    init(_ notice: Notice) {
        self.init(
            status: notice.status, code: notice.code, title: notice.title, detail: notice.detail,
            event: notice.instance, retryAfter: notice.retryAfter, isGenuine: notice.isGenuine)
    }
}

extension SessionEnd {
    init(_ notice: Notice) { self.init(notice.reason ?? "unknown", notice.at, by: notice.by) }

    package init(_ ending: Ending) { self.init(ending.reason, ending.at, by: ending.by) }

    /// Source: docs/protocol.md, "Sessions".
    private init(_ word: String, _ at: Int64?, by: String?) {
        let how: How =
            switch word {
            case "expired": .expired
            case "replaced": .replaced(by: by)
            case "signed-out": .signedOut
            case "revoked": .revoked
            case "reused": .reused
            case "password-changed": .passwordChanged
            case "disabled": .disabled
            case "restored": .restored
            case Ending.deviceKeyLost: .deviceKeyLost
            default: .other(word)
            }
        self.init(how, at: at)
    }
}

extension CountersignEvent.Failure {
    init(_ error: CountersignError) {
        self =
            switch error {
            case .notSignedIn: .notSignedIn
            case .signedOut: .signedOut
            case .accountChanged: .accountChanged
            case .wrongCredentials: .wrongCredentials
            case .refused, .authorityKeyMissing: .refused
            case .updateRequired: .updateRequired
            case .presenceNeeded: .presenceNeeded
            case .notPresent: .notPresent
            case .transport(let error): CountersignEvent.Failure(error)
            case .cancelled: .cancelled
            case .bodyUsedUp: .bodyUsedUp
            case .answerTooLarge: .answerTooLarge
            case .notGenuine: .notGenuine
            case .notUnderstood: .notUnderstood
            case .certificateNotPinned: .certificateNotPinned
            case .vaultLocked: .vaultLocked
            case .vaultFailed: .vaultFailed
            case .deviceKeyUnavailable: .deviceKeyUnavailable
            case .manifest: .manifest
            case .encoding: .encoding
            case .decoding: .decoding
            case .status: .status
            case .intercepted: .intercepted
            case .unusableName, .unusablePassword, .misuse: .misuse
            case .machine: .machine
            }
    }

    private init(_ error: TransportError) {
        self =
            switch error.cause {
            case .offline: .offline
            case .timedOut: .timedOut
            case .untrusted: .untrusted
            case _ where error.fate == .outcomeUnknown: .outcomeUnknown
            default: .connection
            }
    }
}
