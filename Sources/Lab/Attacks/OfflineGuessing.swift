/// People choose passwords that others have chosen before.
struct OfflineGuessing: Attack {
    let name: AttackName = "offline-guessing"
    let column = Column.offlineGuessing
    let sentence =
        "Tests a login that passed against a list of 20,000 words, without asking the server, and signs in with the one that fits."

    func exemption(of row: RowProfile) -> String? { row.hasPasswords ? nil : "there are no passwords" }

    func run(on stage: Stage) async throws -> Outcome {
        try await stage.seeThatItWorks(stage.newVictim())
        let victim = try await stage.newVictim()
        // A rung that sends another value each minute is tested within the minute, or once more.
        for _ in 0..<2 {
            guard let exchanges = try await stage.captured(while: victim.signIn) else {
                return stage.appRefuses
            }
            if let transcript = OpaqueTranscript(exchanges) { return try test(transcript, of: victim, on: stage) }
            guard let login = exchanges.compactMap({ stage.craft.login(in: $0) }).first else {
                throw StageFault("\(stage.row.name): the victim signed in, and no login was seen")
            }
            stage.note(.attacker, "has the login of \(login.name)", showing: login.value)
            if let found = try await guess(login, of: victim, on: stage) { return .succeeded(found) }
        }
        return .failed("none of the \(stage.words.all.count) words fits, though the victim's is among them")
    }

    private func guess(_ login: CapturedLogin, of victim: any Victim, on stage: Stage) async throws -> String? {
        let found = Guessing.search(stage.words.all) { word in
            stage.craft.value(of: word, name: login.name, key: stage.appKey) == login.value
        }
        stage.note(.attacker, "tests \(found.tried) words, at \(found.shownRate)", showing: found.word)
        guard let word = found.word else { return nil }
        for again in stage.craft.logins(name: login.name, password: word, key: stage.appKey) {
            if case .paid = try await stage.signsIn(with: again, as: victim) {
                return "the password was found at \(found.shownRate), signs in, and moves money"
            }
        }
        // A session, or a minute that ended, may stand in the way now; the password is known all the same.
        return "the password was found at \(found.shownRate): it is `\(word)`"
    }

    private func test(_ transcript: OpaqueTranscript, of victim: any Victim, on stage: Stage) throws -> Outcome {
        let found = Guessing.search(stage.words.all) { transcript.tells($0) }
        stage.note(
            .attacker, "tests \(found.tried) words on the transcript, at \(found.shownRate)", showing: transcript.shown)
        if let word = found.word { return .succeeded("the transcript tells that the password is `\(word)`") }
        guard let password = victim.password, stage.words.all.contains(password) else {
            throw StageFault("\(stage.row.name): the victim's password is none of the list's")
        }
        return .failed(
            """
            the transcript fits every word, the right one as well as any other: the password was blinded with a number that is new for \
            each login and never sent; \(found.tried) words tried at \(found.shownRate)
            """)
    }
}
