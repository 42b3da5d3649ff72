import CountersignClient
import CountersignWire

/// What went wrong at the client, in a sentence that says what to do.
extension ClientDesk {
    static func fault(_ problem: ClientProblem, _ profile: String) -> Fault {
        switch problem {
        case .notSignedIn:
            Fault(.failed, "profile \(profile): nobody is signed in; `countersign login --profile \(profile)` signs in")
        case .sessionEnded(let notice):
            Fault(
                .failed,
                "the session has ended: \(reason(notice)); `countersign login --profile \(profile)` signs in again")
        case .wrongCredentials: Fault(.failed, "the name or the password is wrong")
        case .refused(let notice): Fault(.failed, refusal(notice, profile))
        case .accountChanged:
            Fault(.failed, "profile \(profile): somebody else signed in meanwhile; nothing was sent in that name")
        case .cancelled: Fault(.failed, "cancelled")
        case .unreachable(let problem): Fault(.unreachable, problem.detail)
        case .outcomeUnknown(let problem):
            Fault(.unreachable, "\(problem.detail); the outcome is unknown, and the request was not sent again")
        case .brokenOff(let problem): Fault(.unreachable, problem.detail)
        case .notGenuine(let detail):
            Fault(.failed, "the answer is not to be trusted, and nothing was done: \(detail)")
        case .notUnderstood(let detail): Fault(.failed, "the answer is not understood: \(detail)")
        case .incomplete(let detail): Fault(.failed, "profile \(profile): \(detail)")
        case .certificateNotPinned:
            Fault(
                .failed,
                """
                profile \(profile): the server's certificate is not pinned, so whoever has one for its name could take the \
                password or the token; nothing was sent. `countersign profile add` with --pin or --ca names it; with \
                --bearer-secrets-to-any-certificate they are sent all the same
                """)
        case .presenceNeeded: Fault(.failed, "profile \(profile): the device's key needs somebody present")
        case .bodyUsedUp: Fault(.failed, "the body was sent before, and can be sent once only; try again with another")
        case .vaultLocked(let detail): Fault(.failed, "profile \(profile): its vault is locked: \(detail)")
        case .vaultFailed(let detail): Fault(.failed, "profile \(profile): its vault: \(detail)")
        case .machine(let detail): Fault(.failed, detail)
        }
    }

    private static func refusal(_ notice: Notice, _ profile: String) -> String {
        var text = "refused: \(notice.code.isEmpty ? "status \(notice.status)" : notice.code)"
        if !notice.title.isEmpty { text += ": \(notice.title)" }
        if !notice.detail.isEmpty { text += " (\(notice.detail))" }
        if let seconds = notice.retryAfter { text += "; try again in \(seconds) s" }
        if let link = notice.updateURL { text += "; the new version is at \(link)" }
        if notice.code == Refusal.Code.unknownKey.rawValue {
            text += "; if this lasts, sign in again: `countersign login --profile \(profile)`"
        }
        if let instance = notice.instance { text += " [\(instance)]" }
        return text
    }

    /// Why a session is over, as far as it was told.
    static func reason(_ notice: Notice) -> String {
        let reason =
            switch notice.reason {
            case "expired": "it was not used for too long"
            case "replaced": "replaced by a login on another device" + (notice.by.map { " (\($0))" } ?? "")
            case "signed-out": "signed out"
            case "revoked": "revoked"
            case "reused": "a key that had been renewed was used again"
            case "password-changed": "the password was changed"
            case "disabled": "the account was locked or removed"
            case "restored": "the server was restored from a backup"
            case let other?: other
            case nil: "the server did not say why"
            }
        return reason + (notice.at.map { ", \(Moment.text($0))" } ?? "")
    }
}
