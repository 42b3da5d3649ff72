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
        func pay(_ payer: String, _ stage: Stage) async throws -> Bool {
            let before = stage.bank.balance(of: stage.thief)
            switch self {
            case .app(let app): try await app.transfer(100, to: stage.thief)
            case .token(let token):
                let order = Order(payer: payer, payee: stage.thief, amount: 100)
                guard let request = stage.craft.transfer(order, token: token, key: stage.appKey) else { return false }
                _ = try await stage.attack("pays himself with the session", request)
            }
            return stage.bank.balance(of: stage.thief) == before + 100
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
            case .serverNotTrusted, .noAnswer, .signedOut, .notOfThisScheme: throw StageFault("a guess was not answered: \(error)")
            }
        }
    }
}

extension RawResponse {
    /// Whether it says that there were too many guesses. Source: docs/protocol.md, "Answers".
    fileprivate var isLimit: Bool { status == 429 || text.contains(#""code":-8,"#) }
}
