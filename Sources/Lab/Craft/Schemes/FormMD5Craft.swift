import CountersignSchemes
import CountersignSeal
import CountersignWire

/// form-md5: a login of some rung, then a token among signed parameters. Source: docs/protocol.md, "form-md5".
struct FormMD5Craft: Craft {
    enum Logins { case signed, unsigned }

    private let ladder: LadderCraft
    private let logins: Logins
    private let destination: Destination

    init(_ rung: RowProfile.LadderRung, logins: Logins, _ destination: Destination) {
        ladder = LadderCraft(rung)
        self.logins = logins
        self.destination = destination
    }

    func login(in exchange: RawExchange) -> CapturedLogin? { exchange.request.ladderLogin }

    func token(in exchange: RawExchange) -> CapturedToken? {
        let parameters = exchange.request.parameters
        if let token = parameters["token"], let user = parameters["userId"] {
            return CapturedToken(token: token, userID: user)
        }
        return exchange.response.flatMap { $0.loginsToken() }
    }

    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest? {
        ladder.login(login, key: key).flatMap { accepted($0, key) }
    }

    func login(name: String, password: String, key: AppKey) -> RawRequest? {
        ladder.login(name: name, password: password, key: key).flatMap { accepted($0, key) }
    }

    func logins(name: String, password: String, key: AppKey) -> [RawRequest] {
        ladder.logins(name: name, password: password, key: key).compactMap { accepted($0, key) }
    }

    func login(stored: CapturedLogin, key: AppKey) -> RawRequest? {
        ladder.login(stored: stored, key: key).flatMap { accepted($0, key) }
    }

    func value(of password: String, name: String, key: AppKey) -> String? {
        ladder.value(of: password, name: name, key: key)
    }

    func token(from response: RawResponse) -> CapturedToken? { response.loginsToken() }

    func transfer(_ order: Order, token: CapturedToken?, key: AppKey?) -> RawRequest? {
        guard let token, let key else { return nil }
        var request = RawRequest.transfer(form: order, namingThePayer: nil)
        request.parameters.pairs += [.init("userId", token.userID), .init("token", token.token)]
        return signed(request, key)
    }

    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        guard request.parameters["timestamp"] != nil else { return nil }
        var copy = request
        copy.parameters["timestamp"] = CivilTime(seconds: now).description
        return copy
    }

    var ambiguities: [Ambiguity] { FormMD5Ambiguities.all }

    private func accepted(_ login: RawRequest, _ key: AppKey?) -> RawRequest? {
        guard logins == .signed else { return login }
        return key.flatMap { signed(login, $0) }
    }

    private func signed(_ request: RawRequest, _ key: AppKey) -> RawRequest? {
        request.signed(with: FormMD5(), as: key.id, key.secret, at: destination)
    }
}
