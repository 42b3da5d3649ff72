import Countersign
import CountersignClient

/// The app of a user. It behaves as in production, and calls the server over ``Network``.
package protocol Victim: Sendable {
    /// The account name at the bank and at the login.
    var name: String { get }
    /// A password from the ``WordList``; nil if the scheme has no passwords.
    var password: String? { get }
    /// The folder of the app's files, which a backup of the device contains.
    var folder: String { get }

    /// Signs in with name and password. Does nothing if the scheme has no login.
    func signIn() async throws(VictimError)
    /// Sends money, once.
    func transfer(_ amount: Int, to name: String) async throws(VictimError)
    /// Repeats the last transfer as the same order, after the app reported a failure.
    func repeatTransfer() async throws(VictimError)
    /// Requests the account's balance.
    func balance() async throws(VictimError) -> Int
    /// Renews the session in the background, as the app does every two hours.
    func renew() async throws(VictimError)
    /// The app's state in memory, for an attacker that can read it; nil for an app without the SDK, whose
    /// state is all in ``folder``.
    func stateInMemory() async throws(VictimError) -> PersistedState?
}

extension Victim {
    package func stateInMemory() async throws(VictimError) -> PersistedState? { nil }
}

/// Why an action failed, as the app's user sees it.
package enum VictimError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The app does not trust the server's certificate; it sent no byte of the request.
    case serverNotTrusted(String)
    /// The server refused the request, with its code.
    case refused(String)
    /// No response, or one that the app does not accept.
    case noAnswer(String)
    /// The app is signed out.
    case signedOut(String)
    /// The scheme does not support the action.
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

/// A response of the bank, or of a server in front of it.
struct BankResponse: Decodable {
    struct ErrorDetail: Decodable {
        var code: Int
        var msg: String?
    }

    var balance: Int?
    var moved: Int?
    var card: String?
    /// The error object of form-md5, in a response of status 200.
    var err: ErrorDetail?
}

extension VictimError {
    /// The error that an app's user sees for an error of the SDK.
    init(_ error: CountersignError) {
        switch error {
        case .transport(let transport):
            if case .untrusted(let verdict) = transport.cause {
                self = .serverNotTrusted("\(verdict)")
            } else {
                self = .noAnswer("\(transport)")
            }
        case .certificateNotPinned: self = .serverNotTrusted("\(error)")
        case .notSignedIn, .signedOut, .accountChanged, .presenceNeeded: self = .signedOut("\(error)")
        case .refused(let refusal): self = .refused("\(refusal)")
        case .wrongCredentials: self = .refused("wrong-credentials")
        case .updateRequired: self = .refused("update-required")
        case .status(let response, _): self = .refused("status \(response.status)")
        default: self = .noAnswer("\(error)")
        }
    }

    /// The error that an app's user sees for an unexpected response.
    init(_ answer: BankResponse) {
        guard let complaint = answer.err else {
            self = .noAnswer("the answer is not understood")
            return
        }
        self =
            complaint.code == -100 ? .signedOut("-100") : .refused("\(complaint.code) \(complaint.msg ?? "")")
    }
}
