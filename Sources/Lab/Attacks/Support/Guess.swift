/// One guess at a password, at the login itself, and what came of it.
enum Guess: Sendable {
    case right(Entry)
    case wrong
    /// The server did not look at it. With its words.
    case stopped(String)

    /// What a right one opens.
    enum Entry: Sendable {
        case token(CapturedToken)
        case app(any Victim)

        /// Whether the account's money moved by it.
        func pays(_ order: Order, _ stage: Stage) async throws -> Bool {
            switch self {
            case .app(let app):
                let before = try stage.bank.balance(of: order.payee)
                try await app.transfer(order.amount, to: order.payee)
                return try stage.bank.balance(of: order.payee) > before
            case .token(let token):
                guard let request = stage.craft.transfer(order, token: token, key: stage.appKey) else { return false }
                return try await stage.brings(request, noting: "pays himself with the session")
            }
        }
    }

    /// Sends it as the app would: by a request where that is all there is to a login, else from a copy of the app.
    static func make(_ password: String, at name: String, _ stage: Stage) async throws -> Guess {
        guard let request = stage.craft.login(name: name, password: password, key: stage.appKey) else {
            return try await make(password, with: stage.newVictim(DeviceSetup(claiming: name, typing: password)))
        }
        let response = try await stage.network.send(request)
        if let token = stage.craft.token(from: response) { return .right(.token(token)) }
        return response.isLimit ? .stopped(response.text) : .wrong
    }

    private static func make(_ password: String, with app: any Victim) async throws -> Guess {
        do throws(VictimProblem) {
            try await app.signIn()
            return .right(.app(app))
        } catch {
            switch error {
            case .refused(let said): return said.contains("too-many-attempts") ? .stopped(said) : .wrong
            case .serverNotTrusted, .noAnswer, .signedOut, .notOfThisScheme:
                throw StageFault("a guess was not answered: \(error)")
            }
        }
    }
}

extension RawResponse {
    /// Whether it says that there were too many guesses. Source: docs/protocol.md, "Answers".
    var isLimit: Bool { status == 429 || text.contains(#""code":-8,"#) }
}
