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

    /// What an app of that rung sends now.
    static func value(of password: String, on rung: Rung, _ key: AppKey) -> String? {
        let secret = Secret(copying: Array(key.ladder.utf8).span)
        let settings = LadderSettings(salt: secret, key: secret)
        do {
            let kept = try LoginLadder.kept(Secret(copying: Array(password.utf8).span), on: rung, settings)
            let sent = try LoginLadder.sent(kept, on: rung, settings, at: Int64(time(nil)))
            return sent.withExposedBytes { $0.text }
        } catch {
            return nil
        }
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
