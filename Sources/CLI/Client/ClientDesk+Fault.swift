import Countersign
import CountersignWire

/// What went wrong at the client, in a sentence that says what to do.
extension ClientDesk {
    static func fault(_ error: CountersignError, _ profile: String, _ origin: Origin) -> Fault {
        switch error {
        case .notSignedIn:
            Fault(.failed, "profile \(profile): nobody is signed in; `countersign login --profile \(profile)` signs in")
        case .signedOut(let end):
            Fault(
                .failed,
                "the session has ended: \(reason(end)); `countersign login --profile \(profile)` signs in again")
        case .accountChanged:
            Fault(.failed, "profile \(profile): somebody else signed in meanwhile; nothing was sent in that name")
        case .refused(let refusal): Fault(.failed, text(refusal, profile))
        case .updateRequired(let url):
            Fault(
                .failed,
                "refused: update-required: the server wants the app's next version"
                    + (url.map { "; the new version is at \($0)" } ?? ""))
        case .transport(let error) where error.fate == .outcomeUnknown:
            Fault(
                .unreachable,
                "\(error.fault(origin).message); the outcome is unknown, and the request was not sent again")
        case .transport(let error): error.fault(origin)
        case .certificateNotPinned:
            Fault(
                .failed,
                """
                profile \(profile): the server's certificate is not pinned, so whoever has one for its name could take the \
                password or the token; nothing was sent. `countersign profile add` with --pin or --ca names it; with \
                --bearer-secrets-to-any-certificate they are sent all the same
                """)
        case .unusableName, .unusablePassword: Fault(.usage, error.description)
        case .misuse(let detail): Fault(.failed, "profile \(profile): \(detail)")
        case .presenceNeeded: Fault(.failed, "profile \(profile): the device's key needs somebody present")
        case .vaultLocked(let detail): Fault(.failed, "profile \(profile): its vault is locked: \(detail)")
        case .vaultFailed(let detail): Fault(.failed, "profile \(profile): its vault: \(detail)")
        case .deviceKeyUnavailable(let detail): Fault(.failed, "profile \(profile): the device's keys: \(detail)")
        default: Fault(.failed, error.description)
        }
    }

    private static func text(_ refusal: CountersignError.Refusal, _ profile: String) -> String {
        var text = "refused: \(refusal)"
        if refusal.code == Refusal.Code.unknownKey.rawValue {
            text += "; if this lasts, sign in again: `countersign login --profile \(profile)`"
        }
        return text
    }

    /// Why a session is over, as far as it was told.
    static func reason(_ end: SessionEnd) -> String {
        let reason =
            switch end.how {
            case .replaced(let by): "replaced by a login on another device" + (by.map { " (\($0))" } ?? "")
            case .other("unknown"): "the server did not say why"
            default: end.description
            }
        return reason + (end.at.map { ", \(Moment.text($0))" } ?? "")
    }
}
