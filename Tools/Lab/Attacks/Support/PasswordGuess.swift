/// One password guess at the login, and its result.
enum PasswordGuess: Sendable {
    case right(Access)
    case wrong
    /// The server refused to check it, with this text.
    case stopped(String)

    /// The access that the right password gives.
    enum Access: Sendable {
        case token(CapturedToken)
        case app(any Victim)

        /// Whether the account's money moved.
        func pays(_ order: TransferOrder, on stage: Stage) async throws -> Bool {
            switch self {
            case .app(let app):
                let before = try stage.bank.balance(of: order.payee)
                try await app.transfer(order.amount, to: order.payee)
                return try stage.bank.balance(of: order.payee) > before
            case .token(let token):
                guard let request = stage.attackKit.transfer(order, token: token, key: stage.appKey) else {
                    return false
                }
                return try await stage.paysThief(request, noting: "pays himself with the session")
            }
        }
    }

    /// Sends the guess as the app does: as one request where the login is one, else from a copy of the app.
    static func make(_ password: String, at name: String, on stage: Stage) async throws -> PasswordGuess {
        guard let request = stage.attackKit.login(name: name, password: password, key: stage.appKey) else {
            return try await make(
                password, with: stage.newVictim(DeviceSetup(claiming: name, typing: password)))
        }
        let response = try await stage.network.send(request)
        if let token = stage.attackKit.token(from: response) { return .right(.token(token)) }
        return response.isLimit ? .stopped(response.text) : .wrong
    }

    private static func make(_ password: String, with app: any Victim) async throws -> PasswordGuess {
        do {
            try await app.signIn()
            return .right(.app(app))
        } catch {
            switch error {
            case .refused(let said): return said.contains("too-many-attempts") ? .stopped(said) : .wrong
            case .serverNotTrusted, .noAnswer, .signedOut, .notOfThisScheme:
                throw LabError("a guess was not answered: \(error)")
            }
        }
    }
}

extension RawResponse {
    /// Whether it reports too many guesses. Source: docs/protocol.md, "Answers".
    var isLimit: Bool { status == 429 || text.contains(#""code":-8,"#) }
}

/// Types stolen values into a copy of the app, for schemes whose login is more than one request.
struct StolenValueTrial {
    /// The gateway accepts ten unknown devices' login attempts for one account.
    private static let mostTries = 8
    private static let longest = 256

    /// The record whose value signed in and paid; nil where none did.
    private(set) var place: String?
    /// The number of values that were typed.
    private(set) var tries = 0

    /// Tries nothing where ``SchemeAttackKit/login(name:password:key:)`` can write the login.
    init(_ loot: StolenData, as victim: any Victim, on stage: Stage) async throws {
        guard stage.attackKit.login(name: victim.name, password: "", key: stage.appKey) == nil else { return }
        var seen: Set<String> = [victim.name, ""]
        let texts = loot.records.flatMap { record in record.texts.map { (record: record, text: $0) } }
        for rank in PasswordLikelihood.allCases {
            for (record, text) in texts
            where text.utf8.count <= StolenValueTrial.longest && PasswordLikelihood(text) == rank
                && seen.insert(text).inserted
            {
                guard tries < StolenValueTrial.mostTries else {
                    stage.note(
                        .attacker,
                        action:
                            "types \(tries) of the values into a copy of the app, before the server's limit: "
                            + "all refused"
                    )
                    return
                }
                tries += 1
                guard case .right(let entry) = try await PasswordGuess.make(text, at: victim.name, on: stage)
                else { continue }
                guard try await entry.pays(stage.theftOrder(from: victim), on: stage) else { continue }
                place = record.place
                return
            }
        }
        stage.note(
            .attacker,
            action:
                "types \(tries) of the values into a copy of the app, as the victim's password: all refused")
    }
}
