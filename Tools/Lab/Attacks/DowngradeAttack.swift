import CountersignWire
import Synchronization

/// Asks for an older, weaker way that the server or the app still supports, instead of breaking the strong
/// one.
package struct DowngradeAttack: Attack {
    package let name: AttackName = "downgrade"
    package let column = Column.downgrade
    package let sentence =
        "Tells the app that its way of signing in is gone, and calls the server in weaker ways than the app "
        + "does."

    package init() {}

    package func exemption(of row: RowProfile) -> String? {
        row.scheme == .ladder(.plainGet) && row.server == .reference ? "no way is weaker than this" : nil
    }

    package func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.newVictim()
        try await stage.requireSignInAndPayment(by: victim)
        var reasons: [String] = []
        if let told = try await denyLogin(on: stage) {
            switch told {
            case .fallsBack(let how): return .succeeded(how)
            case .stays(let why): reasons.append(why)
            }
        }
        let forms = try await WeakerForm.all(for: victim, on: stage)
        for form in forms {
            if try await form.isAccepted(on: stage) {
                return .succeeded("a weaker form is taken as well: \(form.sentence)")
            }
        }
        reasons.append("none of \(forms.count) weaker forms is taken")
        return .failed(reasons.joined(separator: "; "))
    }

    private enum LoginFallback {
        case fallsBack(String)
        case stays(String)
    }

    /// A man in the middle answers the login like a server that does not support it. Nil where the app's own
    /// login shows the password anyway.
    private func denyLogin(on stage: Stage) async throws -> LoginFallback? {
        guard stage.row.hidesPasswords else { return nil }
        for answer in DowngradeAttack.denials {
            let victim = try await stage.newVictim()
            guard let password = victim.password else { return nil }
            stage.network.intercept { _, _ in answer }
            let problem = await signIn(victim)
            let seen = stage.network.interception
            stage.network.stopIntercepting()
            if case .serverNotTrusted(let why) = problem {
                stage.note(.victim, action: "does not take the attacker for the bank: \(why)")
                return .stays("the app refuses the certificate, and sends the request nowhere else")
            }
            guard let first = seen.exchanges.first else { throw LabError("the app did not ask to sign in") }
            stage.note(.victim, action: "wants to sign in", showing: first.request.shown)
            stage.note(.attacker, action: "answers that there is no such thing", showing: answer.shown)
            let secret = SecretEncodings(of: Array(password.utf8))
            if let shown = seen.exchanges.first(where: { secret.appear(in: $0.request.bytes) }) {
                stage.note(.victim, action: "sends the password", showing: shown.request.shown)
                return .fallsBack(
                    "told that its login is gone (\(answer.status)), the app sends the password itself")
            }
        }
        return .stays(
            "told in \(DowngradeAttack.denials.count) ways that its login is gone, the app sends no password")
    }

    private func signIn(_ victim: any Victim) async -> VictimError? {
        do {
            try await victim.signIn()
            return nil
        } catch {
            return error
        }
    }

    /// Responses of servers that do not support the request.
    private static let denials: [RawResponse] = [
        problemResponse(status: 404, body: #"{"title":"Not Found","status":404}"#),
        problemResponse(status: 501, body: #"{"title":"Not Implemented","status":501}"#),
        problemResponse(
            status: 403, body: #"{"title":"Scheme not allowed","status":403,"code":"scheme-not-allowed"}"#),
        RawResponse(
            200, fields: [("Content-Type", "application/json")],
            body: Array(#"{"err":{"code":-9,"msg":"use password login"}}"#.utf8)),
    ]

    private static func problemResponse(status: Int, body: String) -> RawResponse {
        RawResponse(status, fields: [("Content-Type", "application/problem+json")], body: Array(body.utf8))
    }
}

extension RowProfile {
    /// Whether the app's login sends something other than the password.
    fileprivate var hidesPasswords: Bool {
        switch scheme {
        case .ladder(.plainGet), .ladder(.plainPost), .ladder(.base64), .tokens, .token, .openRoute, .apiKey:
            false
        case .ladder, .formMD5, .messageSignaturesWithPassword, .countersign: true
        }
    }
}
