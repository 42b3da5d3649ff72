import CountersignHandshake
import CountersignSeal
import CountersignWire

/// What stands in a database may be tokens that live, or keys that sign.
struct DatabaseForge: Attack {
    let name: AttackName = "database-forge"
    let column = Column.stolenDatabase
    let sentence =
        "Copies the server's database, and makes requests in a user's name with the tokens and keys that stand in it."

    private static let mostTries = 400

    func exemption(of row: RowProfile) -> String? {
        guard case .apiKey = row.scheme, row.server == .reference else { return nil }
        return "such a server has one key, in its configuration, and no database"
    }

    func run(on stage: Stage) async throws -> Outcome {
        try await stage.proveForgery()
        let victim = try await stage.signedInVictim()
        let loot = try Loot(databases: try await stage.server.stolenDatabase())
        let sought = stage.row.hasPasswords ? victim.name : stage.appKey.id
        let records = loot.ranked(by: sought)
        stage.note(
            .attacker, "copies the database, of \(records.count) rows, and looks for `\(sought)`",
            showing: records.prefix(6).map(\.shown).joined(separator: "\n"))
        var tries = 0
        let all = forgeries(records, of: victim, on: stage)
        for forged in all.prefix(DatabaseForge.mostTries) {
            tries += 1
            if try await stage.brings(forged.request) {
                return .succeeded("\(forged.with) in `\(forged.place)` moves the victim's money")
            }
        }
        guard tries > 0 else {
            throw StageFault("\(stage.row.name): nothing could be made of what stands in the database")
        }
        stage.note(
            .attacker,
            "tries it as token and as key, what concerns the victim first: \(tries) of \(all.count) transfers, all refused"
        )
        return .failed("none of what was tried (\(tries) of \(all.count)) is a token or a key that the server takes")
    }

    private struct Forged {
        var with: String
        var place: String
        var request: RawRequest
    }

    private func forgeries(_ records: [Loot.Record], of victim: any Victim, on stage: Stage) -> [Forged] {
        switch stage.row.scheme {
        case .countersign: sessions(records, of: victim, on: stage)
        case .apiKey: keys(records, of: victim, on: stage)
        case .ladder, .formMD5, .tokens, .token, .openRoute, .messageSignaturesWithPassword:
            tokens(records, of: victim, on: stage)
        }
    }

    /// The key that apps sign with is no secret, since every copy of the app has it: what is wanted is the user's token.
    private func tokens(_ records: [Loot.Record], of victim: any Victim, on stage: Stage) -> [Forged] {
        let own = records.filter { $0.mentions(victim.name) }
        let users = Set(own.flatMap(\.numbers)).sorted()
        let order = stage.order(from: victim)
        var (seen, forged) = (Set<String>(), [Forged]())
        for record in records {
            // What ours look like is no secret either, so bytes are tried in that form, too.
            for text in record.texts.flatMap({ [$0, "b_\($0)"] })
            where text.utf8.count >= 8 && seen.insert(text).inserted {
                for user in users.isEmpty ? [""] : users {
                    let token = CapturedToken(token: text, userID: user)
                    guard let request = stage.craft.transfer(order, token: token, key: stage.appKey) else { continue }
                    forged.append(Forged(with: "a token as it stands", place: record.place, request: request))
                }
            }
        }
        return forged
    }

    private func keys(_ records: [Loot.Record], of victim: any Victim, on stage: Stage) -> [Forged] {
        var forged: [Forged] = []
        for record in records {
            for bytes in record.texts.map({ Array($0.utf8) }) + record.keys {
                let key = AppKey(id: stage.appKey.id, secret: Secret(copying: bytes.span), ladder: "")
                guard let request = stage.craft.transfer(stage.order(from: victim), token: nil, key: key) else {
                    continue
                }
                forged.append(Forged(with: "the key of the app", place: record.place, request: request))
            }
        }
        return forged
    }

    /// Requests are signed with a key that comes of the session's root: what stands beside a session's id may be either.
    private func sessions(_ records: [Loot.Record], of victim: any Victim, on stage: Stage) -> [Forged] {
        let order = stage.order(from: victim)
        var forged: [Forged] = []
        func add(_ candidates: [[UInt8]], of record: Loot.Record) {
            for id in record.values.compactMap({ SessionID($0.span) }) {
                let token = SessionToken(id: id, epoch: 0).description
                for bytes in candidates where bytes != id.bytes {
                    let found = Secret(copying: bytes.span)
                    let derived = SessionRoot(secret: found).requestKey
                    for (key, with) in [(derived, "a session's root"), (found, "a session's key")] {
                        guard let request = stage.forgery.transfer(order, under: token, signedWith: key) else {
                            continue
                        }
                        forged.append(Forged(with: with, place: record.place, request: request))
                    }
                }
            }
        }
        for record in records { add(record.keys + record.stretches, of: record) }
        return forged
    }
}
