import CountersignWire

/// How a client stands, for who shows it.
package enum Standing: Sendable, Equatable {
    /// Nobody is signed in; with how the last session ended, where there was one.
    case signedOut(Ending?)
    case active(AccountName, SessionID, Key = .held)
    /// The vault is closed for now, or a key is held back until somebody shows that he is there. Nothing was lost.
    case locked(Lock)
    /// The vault does not answer. Nothing may be concluded from that; for people.
    case unavailable(String)

    package enum Lock: Sendable, Equatable {
        case vault(String)
        case presence
    }

    /// Where the device's signing key is.
    package enum Key: Sendable { case held, boundToPresence }

    init(_ state: ClientState) {
        guard let login = state.login else {
            self = .signedOut(state.ended)
            return
        }
        self = .active(login.account, login.id, state.keys?.isBoundToPresence == true ? .boundToPresence : .held)
    }

    init(_ problem: ClientProblem) {
        self =
            switch problem {
            case .vaultLocked(let detail): .locked(.vault(detail))
            case .vaultFailed(let detail): .unavailable(detail)
            default: .unavailable("\(problem)")
            }
    }
}

/// How a session ended, as it is remembered until the next one begins.
package struct Ending: Sendable, Equatable {
    /// `signed-out`, `replaced`, `revoked`, …; `unknown` where the authority did not say. Source: docs/protocol.md, "Sessions".
    package let reason: String
    /// Whole Unix seconds.
    package let at: Int64?
    /// The class of device that took its place.
    package let by: String?

    package static let unknown = "unknown"
    /// This device's own word: its hardware does not have its keys any more.
    package static let deviceKeyLost = "device-key-lost"

    package init(reason: String, at: Int64?, by: String?) {
        self.reason = reason
        self.at = at
        self.by = by
    }

    /// By the authority's word.
    init(_ notice: Notice) { self.init(reason: notice.reason ?? Ending.unknown, at: notice.at, by: notice.by) }

    /// By whoever was signed in, on this device.
    static func signedOut(at time: Int64) -> Ending { Ending(reason: "signed-out", at: time, by: nil) }
}

/// Passes on each change of how things stand, in order and once.
final class Announcer: Sendable {
    private struct Said {
        var last: Standing?
        var listeners: [@Sendable (Standing) -> Void] = []
    }

    private let said = Locked(Said())

    func add(_ listener: @escaping @Sendable (Standing) -> Void) {
        said.with { said in
            said.listeners.append(listener)
            if let last = said.last { listener(last) }
        }
    }

    /// Listeners are called under the lock: what two threads tell reaches all of them in the same order.
    func tell(_ standing: Standing) {
        said.with { said in
            guard said.last != standing else { return }
            said.last = standing
            for listener in said.listeners { listener(standing) }
        }
    }
}
