// Each error of a client calls for a different action.
import Countersign

func explain(_ error: CountersignError) -> String {
    switch error {
    case .notSignedIn: "to the login page"
    case .signedOut(let end): "to the login page, with the reason: \(end.how), at \(end.at ?? 0)"
    case .accountChanged: "drop the request: it belonged to another account"
    case .wrongCredentials: "ask again"
    case .unusableName(let why), .unusablePassword(let why): why
    case .refused(let refusal): explain(refusal)
    case .authorityKeyMissing(let refusal): "give the release key its authority key: \(refusal.code)"
    case .updateRequired(let url): "to the shop: \(url ?? "-")"
    case .presenceNeeded: "ask for a presence"
    case .notPresent(let step): "\(step)"
    case .transport(let error): "no answer: \(error)"
    case .cancelled: "nothing"
    case .bodyUsedUp: "make the stream again, and ask again"
    case .answerTooLarge(let limit): "download it: over \(limit) bytes"
    case .notGenuine(let detail): "the response is not authentic: \(detail)"
    case .notUnderstood(let detail), .machine(let detail), .misuse(let detail): "report it: \(detail)"
    case .certificateNotPinned: "pin the certificate"
    case .vaultLocked(let detail): "later: \(detail)"
    case .vaultFailed(let detail): "leave everything as it is: \(detail)"
    case .deviceKeyUnavailable(let detail): "later, or to the login page: \(detail)"
    case .manifest(let problem): "the pins stay: \(problem)"
    case .encoding(let detail), .decoding(let detail): "a mistake in the app or the backend: \(detail)"
    case .status(let response, let body): "\(response.status): \(body.count) bytes"
    case .intercepted(let error): "\(error)"
    }
}

func explain(_ refusal: CountersignError.Refusal) -> String {
    guard refusal.isGenuine else { return "not signed by the authority: \(refusal.title)" }
    let wait = refusal.retryAfter.map { ", again in \($0) s" } ?? ""
    return
        "\(refusal.status) \(refusal.code): \(refusal.title) (\(refusal.detail))\(wait), event \(refusal.event ?? "-")"
}

/// Values for an app's own tests.
let signedOut = CountersignState.signedOut(.ended(SessionEnd(.replaced(by: "tablet"), at: 1_767_225_600)))
let signedIn = CountersignState.active(CountersignAccount(name: "anna", session: "s_1"))
let why: CountersignState.SignedOutReason = .nobody
let how = SessionEnd.How.expired

/// Whether the device itself ended the session: its hardware was cleared, or the vault was copied from
/// another device.
func isOfThisDevice(_ end: SessionEnd) -> Bool { end.how == .deviceKeyLost }
