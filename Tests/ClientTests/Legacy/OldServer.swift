import ClientFakes
import CountersignSeal
import CountersignWire
import Synchronization

@testable import CountersignClient
import CountersignTransport
import Waiting

/// A legacy server as docs/protocol.md describes it: one session for each account, tokens of two hours, and a
/// login token that obtains new ones. It records requests, and can delay an endpoint, go offline or lose
/// responses.
final class OldServer: Transport {
    struct Session {
        var token: String
        var loginToken: String
        /// Expired tokens, in contrast to those of an ended session.
        var old: Set<String> = []
    }

    struct State {
        var session: Session?
        var seen: [Seen] = []
        var given = 0
        /// The bodies of requests that were granted.
        var done: [String] = []
        var isOffline = false
        var isRetired = false
        var loses: Set<String> = []
        var hold: Gate?
    }

    /// A received request.
    struct Seen: Sendable {
        var method: String
        var path: String
        var form: [String: String]
        var token: String?
        var body: String
    }

    /// Blocks requests of one path until it is opened.
    final class Gate: Sendable {
        let path: String
        private let state = Mutex((waiting: 0, isOpen: false))

        init(_ path: String) { self.path = path }
        var waiting: Int { state.withLock { $0.waiting } }
        func open() { state.withLock { $0.isOpen = true } }

        func pass() async {
            state.withLock { $0.waiting += 1 }
            await until("the gate opens") { state.withLock { $0.isOpen } }
        }

        func someoneWaits() async { await until("a request at the gate") { waiting > 0 } }
    }

    static let user: (name: String, id: Int) = ("anna", 7)
    let state = Mutex(State())
    /// The sent value that the login accepts.
    let opens: String
    /// Whether logins bring tokens.
    let tokens: Tokens

    enum Tokens { case both, tokenOnly, none }

    init(opensWith value: String = "pass word+1", tokens: Tokens = .both) {
        opens = value
        self.tokens = tokens
    }

    func seen(_ path: String) -> [Seen] { state.withLock { $0.seen.filter { $0.path == path } } }
    var done: [String] { state.withLock { $0.done } }
    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
    /// Expires the current token.
    func expire() {
        change { state in
            guard var session = state.session else { return }
            session.old.insert(session.token)
            session.token = "nobody's"
            state.session = session
        }
    }
    /// A login on another device replaces the session.
    func replace() { change { $0.session = Session(token: "other", loginToken: "other") } }

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        let seen = Seen(draft)
        let (isOffline, hold) = state.withLock { ($0.isOffline, $0.hold) }
        if isOffline { throw TransportError(.connectionLost("offline"), fate: .notSent) }
        let answer = state.withLock { state in
            state.seen.append(seen)
            return self.answer(seen, &state)
        }
        if let hold, hold.path == seen.path { await hold.pass() }
        await Task.yield()
        if Task.isCancelled { throw TransportError(.connectionLost("cancelled"), fate: .outcomeUnknown) }
        guard state.withLock({ $0.loses.remove(seen.path) }) == nil else {
            throw TransportError(.connectionLost("the answer was lost"), fate: .outcomeUnknown)
        }
        return Response(status: 200, fields: [], body: Array(answer.text.utf8))
    }

    private func answer(_ seen: Seen, _ state: inout State) -> JSONValue {
        if state.isRetired { return err(-99, "https://example.com/new") }
        switch seen.path {
        case "/login/login.php", "/login/loginhmac.php":
            guard seen.form["username"] == OldServer.user.name, seen.form["password"] == opens else {
                return ["userId": 0]
            }
            state.given += 1
            let session = Session(token: "t\(state.given)", loginToken: "l\(state.given)")
            state.session = session
            switch tokens {
            case .none: return ["userId": .integer(Int64(OldServer.user.id))]
            case .tokenOnly:
                return ["userId": .integer(Int64(OldServer.user.id)), "token": .string(session.token)]
            case .both:
                return [
                    "userId": .integer(Int64(OldServer.user.id)), "token": .string(session.token),
                    "loginToken": .string(session.loginToken), "expiresIn": 7200,
                ]
            }
        case "/login/token.php":
            guard var session = state.session, seen.form["loginToken"] == session.loginToken else {
                return err(-100, "event")
            }
            state.given += 1
            session.old.insert(session.token)
            session.token = "t\(state.given)"
            state.session = session
            return ["token": .string(session.token), "expiresIn": 7200]
        default:
            guard let session = state.session, let token = seen.token else { return err(-100, "event") }
            if token == session.token {
                state.done.append(seen.body)
                return ["done": .string(seen.body)]
            }
            return err(session.old.contains(token) ? -101 : -100, "event")
        }
    }

    private func err(_ code: Int64, _ event: String) -> JSONValue {
        ["err": ["code": .integer(code), "msg": "no", "eventId": .string(event)]]
    }
}

extension OldServer.Seen {
    init(_ draft: Draft) {
        let target = String(decoding: draft.target, as: UTF8.self).split(separator: "?", maxSplits: 1)
        method = draft.method
        path = String(target[0])
        body = String(decoding: draft.body, as: UTF8.self)
        form = [:]
        for pair in (target.count > 1 ? String(target[1]) : body).split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1).map { part in
                String(decoding: Form.lenientlyDecoded(Array(part.utf8).span), as: UTF8.self)
            }
            if parts.count == 2 { form[parts[0]] = parts[1] }
        }
        let bearer = draft.fields.first { $0.name == "Authorization" }.map {
            String(decoding: $0.value, as: UTF8.self)
        }
        token = bearer.map { String($0.dropFirst("Bearer ".count)) } ?? form["token"]
    }
}
