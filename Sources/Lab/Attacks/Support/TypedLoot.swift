/// Where a login is more than a request that can be written: what was found is typed into a copy of the app.
struct TypedLoot {
    /// The gateway lets ten strangers' guesses at one account through.
    private static let mostTries = 8
    private static let longest = 256

    /// Where the value stood that signed in and paid; nil where none did.
    private(set) var place: String?
    /// What was typed.
    private(set) var tries = 0

    /// Tries nothing where ``Craft/login(name:password:key:)`` can.
    init(_ loot: Loot, as victim: any Victim, on stage: Stage) async throws {
        guard stage.craft.login(name: victim.name, password: "", key: stage.appKey) == nil else { return }
        var seen: Set<String> = [victim.name, ""]
        let texts = loot.records.flatMap { record in record.texts.map { (record: record, text: $0) } }
        for rank in PasswordLikeness.allCases {
            for (record, text) in texts
            where text.utf8.count <= TypedLoot.longest && PasswordLikeness(text) == rank && seen.insert(text).inserted {
                guard tries < TypedLoot.mostTries else {
                    stage.note(
                        .attacker,
                        "types \(tries) of the values into a copy of the app, before the server's limit: all refused")
                    return
                }
                tries += 1
                guard case .right(let entry) = try await Guess.make(text, at: victim.name, stage) else { continue }
                guard try await entry.pays(stage.order(from: victim), stage) else { continue }
                place = record.place
                return
            }
        }
        stage.note(
            .attacker, "types \(tries) of the values into a copy of the app, as the victim's password: all refused")
    }
}
