import CountersignClient
import CountersignTransport
import CountersignVault

extension CountersignError {
    /// A legacy client's problem, in an app's terms.
    init(_ problem: LegacyProblem) {
        self =
            switch problem {
            case .notSignedIn: .notSignedIn
            case .accountChanged: .accountChanged
            case .sessionEnded(let notice): .signedOut(SessionEnd(notice))
            case .wrongCredentials: .wrongCredentials
            case .updateRequired(let notice): .updateRequired(url: notice.updateURL)
            case .refused(let notice): .refused(Refusal(notice))
            // What became of the request stands in the problem itself.
            case .transport(let problem): CountersignError(ClientProblem.unreachable(problem))
            case .notUnderstood(let detail): .notUnderstood(detail)
            case .notSignable(let detail): .misuse(detail)
            case .certificateNotPinned: .certificateNotPinned
            case .notOverTLS:
                .misuse(
                    "passwords and tokens are sent over TLS only, unless LegacyOptions.bearerSecrets says otherwise")
            case .presenceNeeded: .presenceNeeded
            case .bodyUsedUp: .bodyUsedUp
            case .vault(let problem): CountersignError(problem)
            }
    }
}

extension CountersignState {
    init(_ standing: LegacyStanding) {
        self =
            switch standing {
            case .active(let account, let userID): .active(CountersignAccount(name: account, session: "\(userID)"))
            case .updateRequired(let url): .updateRequired(url: url)
            case .signedOut(.nobodyWas): .signedOut(.nobody)
            case .signedOut(.byUser): .signedOut(.ended(SessionEnd(.signedOut)))
            case .signedOut(.ended(let notice)): .signedOut(.ended(SessionEnd(notice)))
            case .signedOut(.ranOut): .signedOut(.ended(SessionEnd(.expired)))
            case .signedOut(.credentialsRefused): .signedOut(.ended(SessionEnd(.other("credentials-refused"))))
            case .locked, .presenceNeeded: .locked
            case .unavailable: .unavailable
            }
    }
}
