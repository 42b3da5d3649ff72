import CountersignClient

/// The app in its user's hand: it does what apps do, and knows nothing of the lab. Its way to the server lies over ``Network``.
package protocol Victim: Sendable {
    /// The name at the bank and at the login.
    var name: String { get }
    /// Out of the ``WordList``, as people choose them; nil where the scheme has none.
    var password: String? { get }
    /// The folder in which the app keeps what it keeps: what a backup of the device has.
    var folder: String { get }

    /// Types name and password. Does nothing where the scheme has no login.
    func signIn() async throws(VictimProblem)
    /// Sends money, once.
    func transfer(_ amount: Int, to name: String) async throws(VictimProblem)
    /// Presses the button of the last transfer again, on the page that said it did not work: the same wish.
    func tryAgain() async throws(VictimProblem)
    /// Asks for what is on the account.
    func balance() async throws(VictimProblem) -> Int
    /// Renews the session unseen, as the app does every two hours.
    func renew() async throws(VictimProblem)
    /// What the app has in memory, for an attacker who reads that; nil where it is not built on our SDK, and ``folder`` has it all.
    func memory() async throws(VictimProblem) -> PersistedState?
}

extension Victim {
    package func memory() async throws(VictimProblem) -> PersistedState? { nil }
}

/// Why the app could not do it: what its user sees.
package enum VictimProblem: Error, Sendable, Equatable, CustomStringConvertible {
    /// Who answered is not taken for the server; not a byte of the request was sent.
    case serverNotTrusted(String)
    /// The server said no, with its code.
    case refused(String)
    /// No answer, or none that the app believes.
    case noAnswer(String)
    /// The app is at its login page.
    case signedOut(String)
    /// The scheme has no such thing.
    case notOfThisScheme

    package var description: String {
        switch self {
        case .serverNotTrusted(let why): "the server is not trusted: \(why)"
        case .refused(let code): "refused: \(code)"
        case .noAnswer(let why): "no answer: \(why)"
        case .signedOut(let why): "signed out: \(why)"
        case .notOfThisScheme: "the scheme has no such thing"
        }
    }
}
