/// Guesses passwords online from a list that contains most users' passwords.
package struct LoginStormAttack: Attack {
    package let name: AttackName = "login-storm"
    package let column = Column.loginStorm
    package let sentence =
        "Guesses at one account's password as fast as the server answers, while another customer wants to "
        + "sign in."

    /// The right password is sent once the server has looked at so many wrong ones: more than the gateway
    /// looks at of one account in the minutes that the attack takes (ten and, with work, thirty-two, and two
    /// more each minute).
    private static let guesses = 60
    private static let atOnce = 4
    /// The attacker gives up after so many guesses in a row that the server did not look at.
    private static let mostStopped = 16
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
        let wrong = stage.words.all.filter { $0 != right }.shuffled()
        stage.note(
            .attacker,
            action:
                "sends guesses, \(LoginStormAttack.atOnce) at a time, until \(LoginStormAttack.guesses) are "
                + "answered, and then the right one"
        )
        async let other = signIn(bystander)
        var tally = Tally()
        try await tally.send(wrong, at: victim.name, on: stage)
        if tally.wrong >= LoginStormAttack.guesses {
            try await tally.send([right], at: victim.name, on: stage)
        }
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
        private var stoppedInRow = 0

        /// Sends the guesses until enough were answered, or until the server looks at none any more.
        mutating func send(_ guesses: [String], at name: String, on stage: Stage) async throws {
            for start in stride(from: 0, to: guesses.count, by: LoginStormAttack.atOnce) {
                let batch = guesses[start..<min(start + LoginStormAttack.atOnce, guesses.count)]
                for answer in try await Tally.answers(to: batch, at: name, on: stage) { add(answer) }
                guard wrong < LoginStormAttack.guesses, stoppedInRow < LoginStormAttack.mostStopped else {
                    return
                }
            }
        }

        private static func answers(
            to guesses: ArraySlice<String>, at name: String, on stage: Stage
        ) async throws -> [PasswordGuess] {
            try await withThrowingTaskGroup(of: PasswordGuess.self) { group in
                for password in guesses {
                    group.addTask { try await PasswordGuess.make(password, at: name, on: stage) }
                }
                var answers: [PasswordGuess] = []
                while let answer = try await group.next() { answers.append(answer) }
                return answers
            }
        }

        private mutating func add(_ answer: PasswordGuess) {
            switch answer {
            case .right(let entry): self.entry = entry
            case .wrong: (wrong, stoppedInRow) = (wrong + 1, 0)
            case .stopped(let shown):
                (stopped, stoppedInRow, self.shown) = (stopped + 1, stoppedInRow + 1, shown)
            }
        }
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
