import CountersignWire
import Synchronization

/// What is strong today stands beside what was there before. The attacker does not break it: he asks for the other one.
package struct Downgrade: Attack {
    package let name: AttackName = "downgrade"
    package let column = Column.downgrade
    package let sentence =
        "Tells the app that its way of signing in is gone, and calls the server in weaker ways than the app does."

    package init() {}

    package func exemption(of row: RowProfile) -> String? {
        row.scheme == .ladder(.plainGet) && row.server == .reference ? "no way is weaker than this" : nil
    }

    package func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.newVictim()
        try await stage.seeThatItWorks(victim)
        var reasons: [String] = []
        if let told = try await tellTheApp(stage) {
            switch told {
            case .fallsBack(let how): return .succeeded(how)
            case .stays(let why): reasons.append(why)
            }
        }
        let forms = try await WeakerForm.all(victim, stage)
        for form in forms {
            if try await form.isTaken(stage) { return .succeeded("a weaker form is taken as well: \(form.sentence)") }
        }
        reasons.append("none of \(forms.count) weaker forms is taken")
        return .failed(reasons.joined(separator: "; "))
    }

    private enum Told {
        case fallsBack(String)
        case stays(String)
    }

    /// A man in the middle answers the login as a server would that has no such thing. Nil where the app's own login shows the password
    /// anyway.
    private func tellTheApp(_ stage: Stage) async throws -> Told? {
        guard stage.row.hidesPasswords else { return nil }
        for answer in Downgrade.denials {
            let victim = try await stage.newVictim()
            guard let password = victim.password else { return nil }
            stage.network.interpose { _, _ in answer }
            let problem = await signIn(victim)
            let seen = stage.network.interposed
            stage.network.beHonest()
            if case .serverNotTrusted(let why) = problem {
                stage.note(.victim, "does not take the attacker for the bank: \(why)")
                return .stays("the app refuses the certificate, and asks nobody else")
            }
            guard let first = seen.exchanges.first else { throw StageFault("the app did not ask to sign in") }
            stage.note(.victim, "wants to sign in", showing: first.request.shown)
            stage.note(.attacker, "answers that there is no such thing", showing: answer.shown)
            let secret = Disguises(of: Array(password.utf8))
            if let shown = seen.exchanges.first(where: { secret.show(in: $0.request.bytes) }) {
                stage.note(.victim, "sends the password", showing: shown.request.shown)
                return .fallsBack("told that its login is gone (\(answer.status)), the app sends the password itself")
            }
        }
        return .stays("told in \(Downgrade.denials.count) ways that its login is gone, the app sends no password")
    }

    private func signIn(_ victim: any Victim) async -> VictimProblem? {
        do throws(VictimProblem) {
            try await victim.signIn()
            return nil
        } catch {
            return error
        }
    }

    /// What servers say that do not have what was asked for.
    private static let denials: [RawResponse] = [
        problem(404, #"{"title":"Not Found","status":404}"#),
        problem(501, #"{"title":"Not Implemented","status":501}"#),
        problem(403, #"{"title":"Scheme not allowed","status":403,"code":"scheme-not-allowed"}"#),
        RawResponse(
            200, fields: [("Content-Type", "application/json")],
            body: Array(#"{"err":{"code":-9,"msg":"use password login"}}"#.utf8)),
    ]

    private static func problem(_ status: Int, _ body: String) -> RawResponse {
        RawResponse(status, fields: [("Content-Type", "application/problem+json")], body: Array(body.utf8))
    }
}

extension RowProfile {
    /// Whether the app's login shows who reads it something other than the password.
    fileprivate var hidesPasswords: Bool {
        switch scheme {
        case .ladder(.plainGet), .ladder(.plainPost), .ladder(.base64), .tokens, .token, .openRoute, .apiKey: false
        case .ladder, .formMD5, .messageSignaturesWithPassword, .countersign: true
        }
    }
}
