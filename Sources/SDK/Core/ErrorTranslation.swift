import CountersignClient
import CountersignTransport
import CountersignVault
import CountersignWire

extension CountersignError {
    /// Translates an error of the client module for the app.
    package init(_ problem: ClientOperationError) {
        self =
            switch problem {
            case .notSignedIn: .notSignedIn
            case .sessionEnded(let notice): .signedOut(SessionEnd(notice))
            case .accountChanged: .accountChanged
            case .wrongCredentials: .wrongCredentials
            case .passwordTooShort(let minimum): .unusablePassword(PasswordRules.tooShort(minimum))
            case .refused(let notice): CountersignError(notice)
            case .transport(let error): CountersignError(error)
            case .cancelled: .cancelled
            case .notGenuine(let detail): .notGenuine(detail)
            case .notUnderstood(let detail): .notUnderstood(detail)
            case .incomplete(let detail): .misuse(detail)
            case .certificateNotPinned: .certificateNotPinned
            case .notOverTLS:
                .misuse(
                    "passwords and tokens are sent over TLS only, "
                        + "unless LegacyOptions.bearerSecrets says otherwise"
                )
            case .updateRequired(let notice): .updateRequired(url: notice.updateURL)
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

    /// Translates an error of the vault.
    init(_ error: VaultError) { self.init(ClientOperationError(error)) }

    /// Translates a refusal. The client acts on a statement about the version or about a missing session only
    /// if the authority is known to have made it.
    init(_ notice: RefusalNotice) {
        self =
            switch CountersignWire.Refusal.Code(rawValue: notice.code) {
            case .updateRequired where notice.isGenuine: .updateRequired(url: notice.updateURL)
            case .sessionRequired where notice.isGenuine: .signedOut(SessionEnd(.never))
            default: .refused(Refusal(notice))
            }
    }
}

extension CountersignError.Refusal {
    init(_ notice: RefusalNotice) {
        self.init(
            status: notice.status, code: notice.code, title: notice.title, detail: notice.detail,
            event: notice.instance, retryAfter: notice.retryAfter, isGenuine: notice.isGenuine)
    }
}

extension SessionEnd {
    init(_ notice: RefusalNotice) { self.init(SessionEndRecord(notice)) }

    /// Source: docs/protocol.md, "Sessions".
    package init(_ ending: SessionEndRecord) {
        let how: How =
            switch ending.reason {
            case "expired": .expired
            case "replaced": .replaced(by: ending.by)
            case "signed-out": .signedOut
            case "revoked": .revoked
            case "reused": .reused
            case "password-changed": .passwordChanged
            case "disabled": .disabled
            case "restored": .restored
            case SessionEndRecord.deviceKeyLost: .deviceKeyLost
            default: .other(ending.reason)
            }
        self.init(how, at: ending.at)
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

extension CountersignState {
    /// Nil if there was no session.
    fileprivate init(_ ending: SessionEndRecord?) {
        self = .signedOut(ending.map { .ended(SessionEnd($0)) } ?? .nobody)
    }

    init(_ status: SessionStatus) {
        self =
            switch status {
            case .signedOut(let ending): CountersignState(ending)
            case .active(let account, let session, _):
                .active(CountersignAccount(name: account.description, session: session.description))
            case .locked: .locked
            case .unavailable: .unavailable
            }
    }

    init(_ status: LegacySessionStatus) {
        self =
            switch status {
            case .active(let account, let userID):
                .active(CountersignAccount(name: account, session: "\(userID)"))
            case .updateRequired(let url): .updateRequired(url: url)
            case .signedOut(let ending): CountersignState(ending)
            case .locked, .presenceNeeded: .locked
            case .unavailable: .unavailable
            }
    }
}
