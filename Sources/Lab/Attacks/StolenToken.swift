/// A token gets into logs, crash reports and the clipboards of support.
struct StolenToken: Attack {
    let name: AttackName = "stolen-token"
    let column = Column.stolenToken
    let sentence = "Has the victim's token, as it stands in a log or in memory, and uses it from another device."

    func exemption(of row: RowProfile) -> String? {
        row.hasPasswords ? nil : "there are no tokens: each request is signed with the app's key"
    }

    func run(on stage: Stage) async throws -> Outcome {
        try await stage.proveForgery()
        let victim = try await stage.signedInVictim()
        let tokens = try await stage.tokens(of: victim)
        stage.note(
            .attacker, "has what may be the victim's token", showing: tokens.map(\.token).joined(separator: "\n"))
        var tries = 0
        for token in tokens {
            for request in stage.withToken(token, of: victim) {
                tries += 1
                if try await stage.brings(request, noting: tries == 1 ? "orders a transfer with it" : nil) {
                    return .succeeded("whoever has the token is taken for the victim: money moved from another device")
                }
            }
        }
        guard tries > 0 else { throw StageFault("\(stage.row.name): no request can be made with the victim's token") }
        return .failed(
            "the token names a session, and opens nothing: \(tries) ways to use it without the session's key are refused"
        )
    }
}
