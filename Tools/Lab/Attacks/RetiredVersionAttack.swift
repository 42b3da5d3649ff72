/// Uses a retired version: an app may check for its retirement, but only the server can enforce it.
package struct RetiredVersionAttack: Attack {
    package let name: AttackName = "retired-version"
    package let column = Column.retiredVersion
    package let sentence = "Goes on calling with an app version that its operator has retired."

    package init() {}

    package func exemption(of row: RowProfile) -> String? { nil }

    package func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.newVictim()
        try await stage.requireSignInAndPayment(by: victim)
        let retirement = try await stage.server.retire(stage.appKey)
        stage.note(.server, action: retirement.sentence)
        let outcome = try await pay(
            with: [("the session that it had", victim), ("a new login", stage.newVictim())], on: stage)
        try await stage.server.reinstate(stage.appKey)
        switch (outcome, retirement) {
        case (.served(let how), .unsupported):
            return .succeeded(
                "the server knows no versions: the old one is served like any other, with \(how)")
        case (.served(let how), .done):
            return .succeeded("the version is retired, and served all the same, with \(how)")
        case (.refused(let problem), .done):
            // Proves that only the retirement stopped the version. The test takes a new victim, since an app
            // that was told to update stays stopped.
            try await stage.requireSignInAndPayment(by: stage.newVictim())
            return .failed(
                "the version is sent to its update (\(problem)); once it is brought back it works again")
        case (.refused(let problem), .unsupported):
            throw LabError("nothing was retired, and yet the app cannot pay: \(problem)")
        }
    }

    private enum Answer {
        case served(String)
        case refused(VictimError)
    }

    /// Pays from each of these apps until the server accepts a payment.
    private func pay(with apps: [(String, any Victim)], on stage: Stage) async throws -> Answer {
        var problem = VictimError.notOfThisScheme
        for (how, app) in apps {
            let before = try stage.bank.balance(of: stage.thief)
            stage.note(.attacker, action: "pays with the retired version, with \(how)")
            do {
                if how == apps[1].0 { try await app.signIn() }
                try await app.transfer(100, to: stage.thief)
            } catch {
                stage.note(.server, action: "refuses: \(error)")
                problem = error
            }
            if try stage.bank.balance(of: stage.thief) > before { return .served(how) }
        }
        return .refused(problem)
    }
}

extension RetirementOutcome {
    fileprivate var sentence: String {
        switch self {
        case .done: "is told by its operator that the version is retired"
        case .unsupported: "has nothing by which its operator could retire a version"
        }
    }
}
