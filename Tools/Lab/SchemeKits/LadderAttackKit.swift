import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// A rung of the login ladder, then a bearer token; nothing is signed. Source: docs/protocol.md, "The login
/// ladder".
struct LadderAttackKit: SchemeAttackKit {
    private let rung: Rung

    init(_ rung: RowProfile.LadderRung) { self.rung = Rung(rawValue: rung.rawValue) ?? .plainPost }

    func login(in exchange: RawExchange) -> CapturedLogin? { exchange.request.ladderLogin }

    func token(in exchange: RawExchange) -> CapturedToken? { exchange.bearerToken() }

    /// A captured value needs no key, even if the app needed one to compute it.
    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? { request(login) }

    func login(name: String, password: String, key: AppKey) -> RawRequest? {
        LadderAttackKit.value(of: password, on: rung, key: key).flatMap {
            request(CapturedLogin(name: name, value: $0))
        }
    }

    /// A server of the last rung accepts the previous minute's value, too; if it accepts each value once,
    /// that one is still unused.
    func logins(name: String, password: String, key: AppKey) -> [RawRequest] {
        (rung == .hmacMD5Time ? [0, 60] : [0]).compactMap { ago in
            LadderAttackKit.value(of: password, on: rung, key: key, ago: ago)
                .map { request(CapturedLogin(name: name, value: $0)) }
        }
    }

    /// On the last rung, whose sent value changes each minute, the stored value is the input of that
    /// computation.
    func login(stored: CapturedLogin, key: AppKey) -> RawRequest? {
        guard rung == .hmacMD5Time else { return request(stored) }
        let kept = Secret(copying: Array(stored.value.utf8).span)
        return LadderAttackKit.sentValue(of: kept, on: rung, key: key).map {
            request(CapturedLogin(name: stored.name, value: $0))
        }
    }

    func value(of password: String, name: String, key: AppKey) -> String? {
        LadderAttackKit.value(of: password, on: rung, key: key)
    }

    func token(from response: RawResponse) -> CapturedToken? { response.loginToken() }

    func transfer(_ order: TransferOrder, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        token.map { .transfer(form: order, namingThePayer: nil).bearing($0) }
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? { nil }

    /// None: nothing is signed, so that requests can be changed without an ambiguity.
    var ambiguities: [Ambiguity] { [] }

    private func request(_ login: CapturedLogin) -> RawRequest {
        let form = RawForm([
            .init(name: "username", value: login.name), .init(name: "password", value: login.value),
        ])
        var request = RawRequest(method: rung.endpoint.method, target: rung.endpoint.path)
        if rung.endpoint == .query { request.queryForm = form } else { request.bodyForm = form }
        return request
    }

    /// The value that an app of that rung sends `ago` seconds before now.
    static func value(of password: String, on rung: Rung, key: AppKey, ago: Int64 = 0) -> String? {
        let password = Secret(copying: Array(password.utf8).span)
        guard let kept = try? LoginLadder.storedValue(of: password, on: rung, settings: settings(key)) else {
            return nil
        }
        return sentValue(of: kept, on: rung, key: key, ago: ago)
    }

    /// The value that an app sends for a value that a server stores.
    private static func sentValue(of kept: Secret, on rung: Rung, key: AppKey, ago: Int64 = 0) -> String? {
        let then = Int64(time(nil)) - ago
        guard let sent = try? LoginLadder.sentValue(for: kept, on: rung, settings: settings(key), at: then)
        else { return nil }
        return sent.withExposedBytes { $0.text }
    }

    private static func settings(_ key: AppKey) -> LadderSettings {
        let secret = Secret(copying: Array(key.ladder.utf8).span)
        return LadderSettings(salt: secret, key: secret)
    }
}

extension RawRequest {
    /// `username` and `password` at one of the ladder's endpoints.
    var ladderLogin: CapturedLogin? {
        guard path.hasPrefix("/login/login"), let name = parameters["username"],
            let value = parameters["password"]
        else { return nil }
        return CapturedLogin(name: name, value: value)
    }
}
