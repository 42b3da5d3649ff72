/// What an attacker knows of a scheme: the form of its messages and their ambiguities. Contains no keys: an
/// attack has to obtain them. One implementation for each scheme.
package protocol SchemeAttackKit: Sendable {
    /// The login of a recorded exchange that can be sent again; nil if the exchange has none.
    func login(in exchange: RawExchange) -> CapturedLogin?
    /// The session token of a recorded exchange that can be sent again; nil if the exchange has none.
    func token(in exchange: RawExchange) -> CapturedToken?
    /// A login with a captured value, or one from a database: the value that is sent, not the password.
    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest?
    /// A login with a known password. Nil where the scheme's login takes more than one request.
    func login(name: String, password: String, key: AppKey) -> RawRequest?
    /// Every login that the server accepts for that password: a rung that depends on the minute has two.
    func logins(name: String, password: String, key: AppKey) -> [RawRequest]
    /// A login with the value that a server of the scheme stores for a password.
    func login(stored: CapturedLogin, key: AppKey) -> RawRequest?
    /// The value that an app sends now for a password, as ``login(in:)`` finds it, for comparison while
    /// guessing. Nil where it depends on more than these arguments.
    func value(of password: String, name: String, key: AppKey) -> String?
    /// The token in the response to a successful login; nil if the login failed.
    func token(from response: RawResponse) -> CapturedToken?
    /// A newly written transfer in the name of `order.payer`. Nil where the scheme requires a token or key
    /// that is not given.
    func transfer(_ order: TransferOrder, token: CapturedToken?, key: AppKey?) -> RawRequest?
    /// The same request with the timestamp `now` and everything else unchanged, the signature included; nil
    /// if it has no timestamp.
    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest?
    /// The scheme's ambiguities.
    var ambiguities: [Ambiguity] { get }
}

/// A login as sent over the network.
package struct CapturedLogin: Sendable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// A session's token as sent over the network.
package struct CapturedToken: Sendable {
    package var token: String
    /// The user number that the scheme sends with the token; empty where it sends none.
    package var userID: String

    package init(token: String, userID: String = "") {
        self.token = token
        self.userID = userID
    }
}

/// A transfer: payer, payee and amount.
package struct TransferOrder: Sendable {
    package var payer: String
    package var payee: String
    package var amount: Int

    package init(payer: String, payee: String, amount: Int) {
        self.payer = payer
        self.payee = payee
        self.amount = amount
    }
}

extension SchemeAttackKit {
    /// In most schemes one login.
    package func logins(name: String, password: String, key: AppKey) -> [RawRequest] {
        [login(name: name, password: password, key: key)].compactMap(\.self)
    }

    /// In most schemes the stored value is the sent value.
    package func login(stored: CapturedLogin, key: AppKey) -> RawRequest? { login(stored, key: key) }

    /// Writes a login request and reads the value out of it.
    package func value(of password: String, name: String, key: AppKey) -> String? {
        guard let request = login(name: name, password: password, key: key) else { return nil }
        return login(in: RawExchange(request: request, response: nil))?.value
    }
}

/// The attack kit of each row's scheme, as the row's server implements it.
package enum AttackKitCatalogue {
    package static func attackKit(for row: RowProfile, in destination: SigningContext) -> any SchemeAttackKit
    {
        switch (row.scheme, row.server) {
        case (.ladder(let rung), .reference): LadderAttackKit(rung)
        // On the wire these are a rung of the ladder.
        case (.tokens, .reference), (.token, _), (.openRoute, _): LadderAttackKit(.plainPost)
        // Behind the gateway a token alone opens nothing: the app signs with form-md5, except its login.
        case (.ladder(let rung), _): FormMD5AttackKit(rung, logins: .unsigned, context: destination)
        case (.tokens, _): FormMD5AttackKit(.plainPost, logins: .unsigned, context: destination)
        case (.formMD5, _): FormMD5AttackKit(.md5, logins: .signed, context: destination)
        case (.apiKey(let scheme), _): APIKeyAttackKit(scheme, context: destination)
        case (.messageSignaturesWithPassword, _): PasswordAttackKit(destination)
        case (.countersign, _): CountersignAttackKit(destination)
        }
    }
}
