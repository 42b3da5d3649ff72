/// Guesses passwords online from a list that contains most users' passwords.
package struct LoginStormAttack: Attack {
    package let name: AttackName = "login-storm"
    package let column = Column.loginStorm
    package let sentence =
        "Guesses at one account's password as fast as the server answers, while another customer wants to "
        + "sign in."

    /// The right password is the last one: more guesses than the gateway examines at once, with work (ten and
    /// thirty-two of an account) and without.
    private static let guesses = 60
    private static let atOnce = 4
    private static let patience = 10

    package init() {}

    package func exemption(of row: RowProfile) -> String? {
        row.hasPasswords ? nil : "no user signs in: there is no password to guess"
    }

    package func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.newVictim()
        let bystander = try await stage.newVictim()
        try await stage.requireSignInAndPayment(by: victim)
        guard let right = victim.password else { throw LabError("the victim has no password") }
        let wrong = stage.words.all.lazy.filter { $0 != right }.shuffled().prefix(
            LoginStormAttack.guesses - 1)
        stage.note(
            .attacker,
            action:
                "sends \(LoginStormAttack.guesses) guesses, \(LoginStormAttack.atOnce) at a time; the last "
                + "is right"
        )
        async let other = signIn(bystander)
        let tally = try await sendGuesses(Array(wrong) + [right], at: victim.name, on: stage)
        stage.note(
            .server, action: "says to \(tally.wrong) that they are wrong, and stops \(tally.stopped)",
            showing: tally.shown)
        if let problem = await other {
            guard problem.isOverload else {
                throw LabError(
                    "the other customer could not sign in, but not because of the guesses: \(problem)")
            }
            return .succeeded("while the guesses ran in, another customer could not sign in: \(problem)")
        }
        stage.note(.victim, action: "of another name signs in meanwhile")
        guard let entry = tally.entry else {
            guard tally.stopped > 0 else {
                throw LabError("no guess was stopped, and the right one not taken")
            }
            return .failed(
                "after \(tally.wrong) wrong guesses the server stops looking: \(tally.shown ?? "")")
        }
        guard try await entry.pays(stage.theftOrder(from: victim), on: stage) else {
            throw LabError("the login that was found moves no money")
        }
        return .succeeded(
            "\(tally.wrong + 1) guesses are answered, the last of them with a session, which moved money")
    }

    /// Tries again as often as a user that is told that the server is busy.
    private func signIn(_ customer: any Victim) async -> VictimError? {
        var last: VictimError?
        for _ in 0..<LoginStormAttack.patience {
            do {
                try await customer.signIn()
                return nil
            } catch {
                last = error
            }
            try? await Task.sleep(for: .milliseconds(200))
        }
        return last
    }

    private struct Tally: Sendable {
        var wrong = 0
        var stopped = 0
        var shown: String?
        var entry: PasswordGuess.Access?
    }

    private func sendGuesses(_ guesses: [String], at name: String, on stage: Stage) async throws -> Tally {
        var tally = Tally()
        for start in stride(from: 0, to: guesses.count, by: LoginStormAttack.atOnce) {
            let answers = try await withThrowingTaskGroup(of: PasswordGuess.self) { group in
                for password in guesses[start..<min(start + LoginStormAttack.atOnce, guesses.count)] {
                    group.addTask { try await PasswordGuess.make(password, at: name, on: stage) }
                }
                var answers: [PasswordGuess] = []
                while let answer = try await group.next() { answers.append(answer) }
                return answers
            }
            for answer in answers {
                switch answer {
                case .right(let entry): tally.entry = entry
                case .wrong: tally.wrong += 1
                case .stopped(let shown): (tally.stopped, tally.shown) = (tally.stopped + 1, shown)
                }
            }
        }
        return tally
    }
}

extension VictimError {
    /// Whether the server refuses for a limit or since it is busy. Source: docs/protocol.md, "Answers".
    fileprivate var isOverload: Bool {
        guard case .refused(let said) = self else { return false }
        let words = ["too-many-attempts", "unavailable", "status 429", "status 503"]
        return ["-8 ", "-13 "].contains { said.hasPrefix($0) } || words.contains { said.contains($0) }
    }
}
