/// Somebody in between lets one copy of a payment through in secret, shows the app that it was refused, and waits for it to be sent again.
/// Only who remembers the wish, and not the message, can tell a second copy from a second payment.
package struct RetryTrap: Attack {
    package let name: AttackName = "retry-trap"
    package let column = Column.retryTrap
    package let sentence =
        "Lets one copy of a payment through, shows the app a refusal of another, and waits for it to be sent again."

    package init() {}

    package func exemption(of row: RowProfile) -> String? { nil }

    package func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.newVictim()
        try await stage.seeThatItWorks(victim)
        var ends: [String] = []
        for (index, trap) in Trap.allCases.enumerated() {
            // An amount of its own for each, by which the bank's journal tells the payments apart.
            let amount = 11 + index
            let state = TrapState { stage.note($0, $1, showing: $2) }
            stage.network.interpose { request, forward in state.meet(request, by: trap, forward) }
            let said = await fall(into: trap, victim, amount, stage)
            stage.network.beHonest()
            if case .serverNotTrusted(let why) = said {
                stage.note(.victim, "does not take the attacker for the bank: \(why)")
                return .failed("the app refuses the certificate, and sends nothing")
            }
            guard state.isSprung else { throw StageFault("\(trap.rawValue): the payment did not pass") }
            if let why = state.unanswered { throw StageFault("\(trap.rawValue): a copy was not answered: \(why)") }
            let times = try stage.bank.journal().count { $0.from == victim.name && $0.amount == amount }
            if times > 1 { return .succeeded("\(trap.sentence): the payment was made \(times) times") }
            guard times == 1 else { throw StageFault("\(trap.rawValue): the copy that was let through was not done") }
            ends.append(
                "\(trap.rawValue): once, \(said.map { "the app says \($0)" } ?? "the app says that it is done")")
        }
        return .failed("the payment was made once, whatever the app was shown (\(ends.joined(separator: "; ")))")
    }

    /// The payment, and what somebody does who is told that it was refused: he presses the button again. Who is told that nobody knows
    /// looks at his account first, and leaves it.
    private func fall(
        into trap: Trap, _ victim: any Victim, _ amount: Int, _ stage: Stage
    ) async -> VictimProblem? {
        do throws(VictimProblem) {
            stage.note(
                .victim, "pays \(amount) to the attacker, from whom something was bought; in between, \(trap.sentence)")
            try await victim.transfer(amount, to: stage.thief)
            return nil
        } catch {
            stage.note(.victim, "sees: \(error)")
            switch error {
            case .refused, .signedOut: break
            case .serverNotTrusted, .noAnswer, .notOfThisScheme: return error
            }
            do throws(VictimProblem) {
                if case .signedOut = error { try await victim.signIn() }
                await pause(stage.row)
                stage.note(.victim, "presses the button again")
                try await victim.tryAgain()
                return nil
            } catch {
                return error
            }
        }
    }

    /// People take a second. It matters where two equal calls within one have the same signature.
    private func pause(_ row: RowProfile) async {
        guard case .apiKey = row.scheme else { return }
        try? await Task.sleep(for: .milliseconds(1_050))
    }
}
