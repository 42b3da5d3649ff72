import CountersignSeal
import CountersignWire

/// Tries every value of a stolen database as a login.
struct DatabaseSignInAttack: Attack {
    let name: AttackName = "database-sign-in"
    let column = Column.stolenDatabase
    let sentence =
        "Copies the server's database, signs in with what it stores beside a user's name, and takes the "
        + "user's money."

    /// The gateway accepts ten unknown devices' login attempts for one account. The lab tries no more than
    /// this on a server without a limit, either.
    private static let mostTries = 80

    func exemption(of row: RowProfile) -> String? {
        row.hasPasswords ? nil : "no user signs in: a request names the user in a parameter"
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.signedInVictim()
        let loot = StolenData(
            try StolenData(databases: try await stage.server.copyDatabase()).records(concerning: victim.name))
        guard !loot.records.isEmpty else {
            throw LabError("\(stage.row.name): a database without \(victim.name)")
        }
        stage.note(
            .attacker, action: "copies the database, and finds the victim's name in it",
            showing: loot.records.prefix(6).map(\.shown).joined(separator: "\n"))
        let (found, sent) = try await signIn(with: loot, as: victim, on: stage)
        if let found { return .succeeded(found) }
        let typed = try await StolenValueTrial(loot, as: victim, on: stage)
        if let place = typed.place {
            return .succeeded("what stands beside the name in `\(place)` is the password, and moves money")
        }
        let values = Set(loot.records.flatMap(\.texts)).subtracting([victim.name]).count
        guard sent + typed.tries > 0 else {
            throw LabError("\(stage.row.name): nothing was tried as a login")
        }
        if let found = try await guess(loot, as: victim, on: stage) { return .succeeded(found) }
        return .failed(
            """
            nothing that was tried signs in (\(max(sent, typed.tries)) of \(values) values, likely passwords \
            first, up to the limit), and nothing can be tested against a word list
            """)
    }

    /// Sends every value that stands beside the name, as it is and as the password that a user types.
    private func signIn(with loot: StolenData, as victim: any Victim, on stage: Stage) async throws -> (
        found: String?, values: Int
    ) {
        var (tried, values): (Set<[UInt8]>, Set<String>) = ([], [])
        let texts = loot.records.flatMap { record in record.texts.map { (record: record, text: $0) } }
        for rank in PasswordLikelihood.allCases {
            for (record, text) in texts where text != victim.name && PasswordLikelihood(text) == rank {
                let stored = CapturedLogin(name: victim.name, value: text)
                let requests = [
                    stage.attackKit.login(stored, key: stage.appKey),
                    stage.attackKit.login(stored: stored, key: stage.appKey),
                    stage.attackKit.login(name: victim.name, password: text, key: stage.appKey),
                ]
                for request in requests.compactMap(\.self) where tried.insert(request.bytes).inserted {
                    guard tried.count <= DatabaseSignInAttack.mostTries else { return (nil, values.count) }
                    switch try await stage.signIn(with: request, as: victim) {
                    case .paid:
                        return (
                            "what stands beside the name in `\(record.place)` signs in as it is, and moves "
                                + "money",
                            values.count
                        )
                    case .refused(let answer) where answer.isLimit:
                        stage.note(
                            .server, action: "looks at no more, after \(values.count) values",
                            showing: answer.shown)
                        return (nil, values.count)
                    case .refused, .signedIn: values.insert(text)
                    }
                }
            }
        }
        stage.note(
            .attacker,
            action:
                "tries to sign in with all that stands beside the name: \(tried.count) logins, all refused")
        return (nil, values.count)
    }

    /// Tests slow hashes offline against the word list. Nil where none of its words signs in.
    private func guess(_ loot: StolenData, as victim: any Victim, on stage: Stage) async throws -> String? {
        for hash in loot.records.flatMap(\.texts).compactMap(StolenPasswordHash.init) {
            guard let password = victim.password else { return nil }
            let share = stage.words.all.share(containing: password, of: StolenPasswordHash.wordsPerMachine)
            let found = WordListSearch.run(over: share) { hash.matches($0) }
            let hours = Double(stage.words.all.count) / max(found.rate, 0.001) / 3_600
            stage.note(
                .attacker,
                action: """
                    tries a slow hash against the word list, which is divided among \
                    \(stage.words.all.count / share.count) machines: the one that has the right share tries \
                    \(found.tried) words at \(found.shownRate)
                    """, showing: hash.text)
            guard let word = found.word,
                let login = stage.attackKit.login(name: victim.name, password: word, key: stage.appKey)
            else { continue }
            if case .paid = try await stage.signIn(with: login, as: victim) {
                return """
                    the slow hash gives way to the word list (\(found.shownRate) on one core: \
                    \(Int(hours * 60)) minutes for all \(stage.words.all.count)), and the password signs in
                    """
            }
        }
        return nil
    }
}

/// A password hash found in a stolen row: Argon2id with its parameters and salt.
struct StolenPasswordHash: Sendable {
    /// Words for each machine, where the list is divided among many.
    static let wordsPerMachine = 20

    /// The stored text: ``PasswordHash/encoded`` in hexadecimal.
    let text: String
    private let hash: PasswordHash

    /// Nil where `text` is no such hash.
    init?(_ text: String) {
        guard let bytes = Hex.decode(text), let hash = PasswordHash(encoded: Secret(copying: bytes.span))
        else {
            return nil
        }
        self.text = text
        self.hash = hash
    }

    func matches(_ word: String) -> Bool {
        guard let verdict = try? hash.matches(Secret(copying: Array(word.utf8).span)) else { return false }
        return verdict == .equal
    }
}
