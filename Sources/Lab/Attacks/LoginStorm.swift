/// Most passwords stand in a list. Against a server that answers every guess, it is only a matter of time.
package struct LoginStorm: Attack {
    package let name: AttackName = "login-storm"
    package let column = Column.loginStorm
    package let sentence =
        "Guesses at one account's password as fast as the server answers, while another customer wants to sign in."

    /// The right one comes last: four times what a forgetful customer may need.
    private static let guesses = 40
    private static let atOnce = 4
    private static let patience = 10

    package init() {}

    package func exemption(of row: RowProfile) -> String? {
        row.hasPasswords ? nil : "nobody signs in: there is no password to guess"
    }

    package func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.newVictim()
        let bystander = try await stage.newVictim()
        try await stage.seeThatItWorks(victim)
        guard let right = victim.password else { throw StageFault("the victim has no password") }
        let wrong = stage.words.all.lazy.filter { $0 != right }.shuffled().prefix(LoginStorm.guesses - 1)
        stage.note(.attacker, "sends \(LoginStorm.guesses) guesses, \(LoginStorm.atOnce) at a time; the last is right")
        async let other = signIn(bystander)
        let tally = try await storm(Array(wrong) + [right], at: victim.name, stage)
        stage.note(
            .server, "says to \(tally.wrong) that they are wrong, and stops \(tally.stopped)", showing: tally.shown)
        if let problem = await other {
            guard problem.isOverload else {
                throw StageFault("the other customer could not sign in, but not because of the guesses: \(problem)")
            }
            return .succeeded("while the guesses ran in, another customer could not sign in: \(problem)")
        }
        stage.note(.victim, "of another name signs in meanwhile")
        guard let entry = tally.entry else {
            guard tally.stopped > 0 else { throw StageFault("no guess was stopped, and the right one not taken") }
            return .failed("after \(tally.wrong) wrong guesses the server stops looking: \(tally.shown ?? "")")
        }
        guard try await entry.pays(stage.order(from: victim), stage) else {
            throw StageFault("the login that was found moves no money")
        }
        return .succeeded("\(tally.wrong + 1) guesses are answered, the last of them with a session, which moved money")
    }

    /// Tries as often as somebody would who is told that the server is busy.
    private func signIn(_ customer: any Victim) async -> VictimProblem? {
        var last: VictimProblem?
        for _ in 0..<LoginStorm.patience {
            do throws(VictimProblem) {
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
        var entry: Guess.Entry?
    }

    private func storm(_ guesses: [String], at name: String, _ stage: Stage) async throws -> Tally {
        var tally = Tally()
        for start in stride(from: 0, to: guesses.count, by: LoginStorm.atOnce) {
            let answers = try await withThrowingTaskGroup(of: Guess.self) { group in
                for password in guesses[start..<min(start + LoginStorm.atOnce, guesses.count)] {
                    group.addTask { try await Guess.make(password, at: name, stage) }
                }
                var answers: [Guess] = []
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

extension VictimProblem {
    /// Whether the server refuses because of how many ask: for a limit, or since it is busy. Source: docs/protocol.md, "Answers".
    fileprivate var isOverload: Bool {
        guard case .refused(let said) = self else { return false }
        let words = ["too-many-attempts", "unavailable", "status 429", "status 503"]
        return ["-8 ", "-13 "].contains { said.hasPrefix($0) } || words.contains { said.contains($0) }
    }
}
