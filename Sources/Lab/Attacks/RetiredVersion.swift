/// A version has a flaw, and its operator retires it. Whether it is gone depends on who is asked each time: the app, or the server.
package struct RetiredVersion: Attack {
    package let name: AttackName = "retired-version"
    package let column = Column.retiredVersion
    package let sentence = "Goes on calling with an app version that its operator has retired."

    package init() {}

    package func exemption(of row: RowProfile) -> String? { nil }

    package func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.newVictim()
        try await stage.seeThatItWorks(victim)
        let retirement = try await stage.server.retire(stage.appKey)
        stage.note(.server, retirement.sentence)
        let outcome = try await call(
            with: [("the session that it had", victim), ("a new login", stage.newVictim())], stage)
        try await stage.server.bringBack(stage.appKey)
        switch (outcome, retirement) {
        case (.served(let how), .isNotKnownHere):
            return .succeeded("the server knows no versions: the old one is served like any other, with \(how)")
        case (.served(let how), .done):
            return .succeeded("the version is retired, and served all the same, with \(how)")
        case (.refused(let problem), .done):
            // What stood in its way must have been the retirement, and nothing else. Apps that were sent away stay away by themselves.
            try await stage.seeThatItWorks(stage.newVictim())
            return .failed("the version is sent to its update (\(problem)); once it is brought back it works again")
        case (.refused(let problem), .isNotKnownHere):
            throw StageFault("nothing was retired, and yet the app cannot pay: \(problem)")
        }
    }

    private enum Answer {
        case served(String)
        case refused(VictimProblem)
    }

    /// Pays from each of these apps, until one is served.
    private func call(with apps: [(String, any Victim)], _ stage: Stage) async throws -> Answer {
        var problem = VictimProblem.notOfThisScheme
        for (how, app) in apps {
            let before = try stage.bank.balance(of: stage.thief)
            stage.note(.attacker, "pays with the retired version, with \(how)")
            do throws(VictimProblem) {
                if how == apps[1].0 { try await app.signIn() }
                try await app.transfer(100, to: stage.thief)
            } catch {
                stage.note(.server, "refuses: \(error)")
                problem = error
            }
            if try stage.bank.balance(of: stage.thief) > before { return .served(how) }
        }
        return .refused(problem)
    }
}

extension Retiring {
    fileprivate var sentence: String {
        switch self {
        case .done: "is told by its operator that the version is retired"
        case .isNotKnownHere: "has nothing by which its operator could retire a version"
        }
    }
}
