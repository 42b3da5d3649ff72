/// What an attacker knows of a scheme: how its messages look and what they leave open. No keys: those he has to get. One implementation for
/// each scheme.
package protocol Craft: Sendable {
    /// What can be sent again to sign in, out of what was recorded; nil where nothing of the kind passed.
    func login(in exchange: RawExchange) -> CapturedLogin?
    /// What can be sent again to act as who is signed in; nil where nothing of the kind passed.
    func token(in exchange: RawExchange) -> CapturedToken?
    /// A login with what was captured or taken out of a database: the wire's value, not the password.
    func login(_ login: CapturedLogin, key: AppKey?) -> RawRequest?
    /// A login with a password that was found. Nil where the scheme's login takes more than a request.
    func login(name: String, password: String, key: AppKey) -> RawRequest?
    /// Each login that the server takes for that password: some count in minutes.
    func logins(name: String, password: String, key: AppKey) -> [RawRequest]
    /// A login with what a server of the scheme keeps in its database of a password.
    func login(stored: CapturedLogin, key: AppKey) -> RawRequest?
    /// What an app sends now for a password, as ``login(in:)`` finds it: for whoever tries words. Nil where it depends on more than these.
    func value(of password: String, name: String, key: AppKey) -> String?
    /// What a login that succeeded gives; nil for one that did not.
    func token(from response: RawResponse) -> CapturedToken?
    /// Moves money in somebody's name, new from the first byte. Nil where the scheme wants a signature and no key is given.
    func transfer(_ order: Order, token: CapturedToken?, key: AppKey?) -> RawRequest?
    /// The same request with a timestamp of now, signature and all else left alone; nil where the scheme has none.
    func restamped(_ request: RawRequest, at now: Int64) -> RawRequest?
    /// What the scheme reads in two ways.
    var ambiguities: [Ambiguity] { get }
}

/// What was on the wire of a login.
package struct CapturedLogin: Sendable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// What was on the wire of a session.
package struct CapturedToken: Sendable {
    package var token: String
    /// Where the scheme says it besides; empty where not.
    package var userID: String

    package init(token: String, userID: String = "") {
        self.token = token
        self.userID = userID
    }
}

/// Who is to pay whom.
package struct Order: Sendable {
    package var payer: String
    package var payee: String
    package var amount: Int

    package init(payer: String, payee: String, amount: Int) {
        self.payer = payer
        self.payee = payee
        self.amount = amount
    }
}
