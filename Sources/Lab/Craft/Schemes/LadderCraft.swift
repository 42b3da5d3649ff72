import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// A rung of the login ladder, then a bearer token; nothing is signed. Source: docs/protocol.md, "The login ladder".
struct LadderCraft: Craft {
    private let rung: Rung

    init(_ rung: RowProfile.LadderRung) { self.rung = Rung(rawValue: rung.rawValue) ?? .plainPost }

    func login(in exchange: RawExchange) -> CapturedLogin? { exchange.request.ladderLogin }

    func token(in exchange: RawExchange) -> CapturedToken? { exchange.bearerToken() }

    /// Whoever has what is sent needs no key, even where one was needed to make it.
    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? { request(login) }

    func login(name: String, password: String, key: AppKey) -> RawRequest? {
        LadderCraft.value(of: password, on: rung, key).flatMap { request(CapturedLogin(name: name, value: $0)) }
    }

    /// The last rung's server takes the minute before, too: where it takes each once, that one is still good.
    func logins(name: String, password: String, key: AppKey) -> [RawRequest] {
        (rung == .hmacMD5Time ? [0, 60] : [0]).compactMap { ago in
            LadderCraft.value(of: password, on: rung, key, ago: ago)
                .map { request(CapturedLogin(name: name, value: $0)) }
        }
    }

    /// Of the last rung, which sends something else each minute, what is kept is one step before that.
    func login(stored: CapturedLogin, key: AppKey) -> RawRequest? {
        guard rung == .hmacMD5Time else { return request(stored) }
        let kept = Secret(copying: Array(stored.value.utf8).span)
        return LadderCraft.sent(kept, on: rung, key).map { request(CapturedLogin(name: stored.name, value: $0)) }
    }

    func value(of password: String, name: String, key: AppKey) -> String? {
        LadderCraft.value(of: password, on: rung, key)
    }

    func token(from response: RawResponse) -> CapturedToken? { response.loginsToken() }

    func transfer(_ order: Order, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        token.map { .transfer(form: order, namingThePayer: nil).bearing($0) }
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? { nil }

    /// Nothing is signed, so nothing has to be read in two ways to be changed.
    var ambiguities: [Ambiguity] { [] }

    private func request(_ login: CapturedLogin) -> RawRequest {
        let form = RawForm([.init("username", login.name), .init("password", login.value)])
        var request = RawRequest(rung.door.method, rung.door.path)
        if rung.door == .query { request.queryForm = form } else { request.bodyForm = form }
        return request
    }

    /// What an app of that rung sends now, or sent so many seconds `ago`.
    static func value(of password: String, on rung: Rung, _ key: AppKey, ago: Int64 = 0) -> String? {
        let password = Secret(copying: Array(password.utf8).span)
        guard let kept = try? LoginLadder.kept(password, on: rung, settings(key)) else { return nil }
        return sent(kept, on: rung, key, ago: ago)
    }

    /// What an app sends now for what a server of the field keeps.
    private static func sent(_ kept: Secret, on rung: Rung, _ key: AppKey, ago: Int64 = 0) -> String? {
        let then = Int64(time(nil)) - ago
        guard let sent = try? LoginLadder.sent(kept, on: rung, settings(key), at: then) else { return nil }
        return sent.withExposedBytes { $0.text }
    }

    private static func settings(_ key: AppKey) -> LadderSettings {
        let secret = Secret(copying: Array(key.ladder.utf8).span)
        return LadderSettings(salt: secret, key: secret)
    }
}

extension RawRequest {
    /// `username` and `password` at one of the ladder's doors.
    var ladderLogin: CapturedLogin? {
        guard path.hasPrefix("/login/login"), let name = parameters["username"], let value = parameters["password"]
        else { return nil }
        return CapturedLogin(name: name, value: value)
    }
}
