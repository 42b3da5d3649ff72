/// A stolen database is only stolen rows where nothing in it is good for signing in.
struct DatabaseSignIn: Attack {
    let name: AttackName = "database-sign-in"
    let column = Column.stolenDatabase
    let sentence =
        "Copies the server's database, signs in with what stands beside a user's name there, and takes his money."

    /// The gateway lets ten strangers' guesses at one account through. A server without a limit gets no more than this either.
    private static let mostTries = 80

    func exemption(of row: RowProfile) -> String? {
        row.hasPasswords ? nil : "nobody signs in: a request names the user in a parameter"
    }

    func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.signedInVictim()
        let loot = Loot(try Loot(databases: try await stage.server.stolenDatabase()).about(victim.name))
        guard !loot.records.isEmpty else { throw StageFault("\(stage.row.name): a database without \(victim.name)") }
        stage.note(
            .attacker, "copies the database, and finds the victim's name in it",
            showing: loot.records.prefix(6).map(\.shown).joined(separator: "\n"))
        let (found, sent) = try await signIn(with: loot, as: victim, on: stage)
        if let found { return .succeeded(found) }
        let typed = try await TypedLoot(loot, as: victim, on: stage)
        if let place = typed.place {
            return .succeeded("what stands beside the name in `\(place)` is the password, and moves money")
        }
        let values = Set(loot.records.flatMap(\.texts)).subtracting([victim.name]).count
        guard sent + typed.tries > 0 else { throw StageFault("\(stage.row.name): nothing was tried as a login") }
        if let found = try await guess(loot, as: victim, on: stage) { return .succeeded(found) }
        return .failed(
            """
            nothing that was tried signs in (\(max(sent, typed.tries)) of \(values) values, likely passwords first, up to the limit), and \
            nothing can be tested against a word list
            """)
    }

    /// Every value that stands beside the name, sent as it is, and as if the user had typed it.
    private func signIn(with loot: Loot, as victim: any Victim, on stage: Stage) async throws -> (
        found: String?, values: Int
    ) {
        var (tried, values): (Set<[UInt8]>, Set<String>) = ([], [])
        let texts = loot.records.flatMap { record in record.texts.map { (record: record, text: $0) } }
        for rank in PasswordLikeness.allCases {
            for (record, text) in texts where text != victim.name && PasswordLikeness(text) == rank {
                let stored = CapturedLogin(name: victim.name, value: text)
                let requests = [
                    stage.craft.login(stored, key: stage.appKey), stage.craft.login(stored: stored, key: stage.appKey),
                    stage.craft.login(name: victim.name, password: text, key: stage.appKey),
                ]
                for request in requests.compactMap(\.self) where tried.insert(request.bytes).inserted {
                    guard tried.count <= DatabaseSignIn.mostTries else { return (nil, values.count) }
                    switch try await stage.signsIn(with: request, as: victim) {
                    case .paid:
                        return (
                            "what stands beside the name in `\(record.place)` signs in as it is, and moves money",
                            values.count
                        )
                    case .refused(let answer) where answer.isLimit:
                        stage.note(.server, "looks at no more, after \(values.count) values", showing: answer.shown)
                        return (nil, values.count)
                    case .refused, .letIn: values.insert(text)
                    }
                }
            }
        }
        stage.note(
            .attacker, "tries to sign in with all that stands beside the name: \(tried.count) logins, all refused")
        return (nil, values.count)
    }

    /// Slow hashes can be tested offline, each of the words in turn.
    private func guess(_ loot: Loot, as victim: any Victim, on stage: Stage) async throws -> String? {
        for hash in loot.records.flatMap(\.texts).compactMap(SlowHash.init) {
            guard let password = victim.password else { return nil }
            let share = stage.words.all.share(containing: password, of: SlowHash.share)
            let found = Guessing.search(share) { hash.matches($0) }
            let hours = Double(stage.words.all.count) / max(found.rate, 0.001) / 3_600
            stage.note(
                .attacker,
                """
                tries a slow hash against the word list, which is divided among \(stage.words.all.count / share.count) machines: the one \
                that has the right share tries \(found.tried) words at \(found.shownRate)
                """, showing: hash.text)
            guard let word = found.word,
                let login = stage.craft.login(name: victim.name, password: word, key: stage.appKey)
            else { continue }
            if case .paid = try await stage.signsIn(with: login, as: victim) {
                return """
                    the slow hash gives way to the word list (\(found.shownRate) on one core: \(Int(hours * 60)) minutes \
                    for all \(stage.words.all.count)), and the password signs in
                    """
            }
        }
        return nil
    }
}
