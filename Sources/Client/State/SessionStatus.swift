import CountersignWire

/// The state of a client's session, for display.
package enum SessionStatus: Sendable, Equatable {
    /// No account is signed in. Carries how the last session ended, if there was one.
    case signedOut(SessionEndRecord?)
    case active(AccountName, SessionID, Key = .held)
    /// The vault is locked for now, or a key is withheld until the user confirms their presence. Nothing was
    /// lost.
    case locked(Lock)
    /// The vault does not respond. Nothing may be concluded from that. The text is for people.
    case unavailable(String)

    package enum Lock: Sendable, Equatable {
        case vault(String)
        case presence
    }

    /// Where the device's signing key is.
    package enum Key: Sendable { case held, boundToPresence }

    init(_ state: PersistedState) {
        guard let login = state.login else {
            self = .signedOut(state.ended)
            return
        }
        self = .active(
            login.account, login.id, state.keys?.isBoundToPresence == true ? .boundToPresence : .held)
    }

    init(_ problem: ClientOperationError) {
        self =
            switch problem {
            case .vaultLocked(let detail): .locked(.vault(detail))
            case .vaultFailed(let detail): .unavailable(detail)
            default: .unavailable("\(problem)")
            }
    }
}

/// How a session ended; stored until the next one begins.
package struct SessionEndRecord: Sendable, Equatable {
    /// `signed-out`, `replaced`, `revoked`, …; `unknown` if the authority did not say. Source:
    /// docs/protocol.md, "Sessions".
    package let reason: String
    /// Whole Unix seconds.
    package let at: Int64?
    /// The class of the device that replaced this one.
    package let by: String?

    package static let unknown = "unknown"
    /// Set by this device itself: its hardware does not have its keys any more.
    package static let deviceKeyLost = "device-key-lost"

    /// At a legacy server: the user signed out, here or in another process.
    package static let byUser = SessionEndRecord(reason: "signed-out", at: nil, by: nil)
    /// The token expired, and nothing stored here can get another.
    package static let tokenExpired = SessionEndRecord(reason: "expired", at: nil, by: nil)
    /// The server refused the remembered credentials.
    package static let credentialsRefused = SessionEndRecord(reason: "credentials-refused", at: nil, by: nil)

    package init(reason: String, at: Int64?, by: String?) {
        self.reason = reason
        self.at = at
        self.by = by
    }

    /// From the authority's notice.
    package init(_ notice: RefusalNotice) {
        self.init(reason: notice.reason ?? SessionEndRecord.unknown, at: notice.at, by: notice.by)
    }

    /// By the user of this device.
    static func signedOut(at time: Int64) -> SessionEndRecord {
        SessionEndRecord(reason: "signed-out", at: time, by: nil)
    }
}

/// Passes on each change of the status, in order and once.
final class StatusAnnouncer: Sendable {
    private struct State {
        var last: SessionStatus?
        var listeners: [@Sendable (SessionStatus) -> Void] = []
    }

    private let state = Locked(State())

    func add(_ listener: @escaping @Sendable (SessionStatus) -> Void) {
        state.with { state in
            state.listeners.append(listener)
            if let last = state.last { listener(last) }
        }
    }

    /// Calls the listeners under the lock: changes from two threads reach all of them in the same order.
    func tell(_ status: SessionStatus) {
        state.with { state in
            guard state.last != status else { return }
            state.last = status
            for listener in state.listeners { listener(status) }
        }
    }
}
