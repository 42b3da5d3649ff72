import CountersignHandshake
import CountersignSeal
import CountersignWire

/// Live tokens or signing keys can stand in a database.
struct DatabaseForgeAttack: Attack {
    let name: AttackName = "database-forge"
    let column = Column.stolenDatabase
    let sentence =
        "Copies the server's database, and makes requests in a user's name with the tokens and keys that "
        + "stand in it."

    private static let mostTries = 400

    func exemption(of row: RowProfile) -> String? {
        guard case .apiKey = row.scheme, row.server == .reference else { return nil }
        return "such a server has one key, in its configuration, and no database"
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        try await stage.requireValidForgery()
        let victim = try await stage.signedInVictim()
        let loot = try StolenData(databases: try await stage.server.copyDatabase())
        let sought = stage.row.hasPasswords ? victim.name : stage.appKey.id
        let records = loot.ranked(by: sought)
        stage.note(
            .attacker, action: "copies the database, of \(records.count) rows, and looks for `\(sought)`",
            showing: records.prefix(6).map(\.shown).joined(separator: "\n"))
        var tries = 0
        let all = forgeries(records, of: victim, on: stage)
        for forged in all.prefix(DatabaseForgeAttack.mostTries) {
            tries += 1
            if try await stage.paysThief(forged.request) {
                return .succeeded("\(forged.with) in `\(forged.place)` moves the victim's money")
            }
        }
        guard tries > 0 else {
            throw LabError("\(stage.row.name): nothing could be made of what stands in the database")
        }
        stage.note(
            .attacker,
            action:
                "tries it as token and as key, what concerns the victim first: \(tries) of \(all.count) "
                + "transfers, all refused"
        )
        return .failed(
            "none of what was tried (\(tries) of \(all.count)) is a token or a key that the server takes")
    }

    private struct ForgedRequest {
        var with: String
        var place: String
        var request: RawRequest
    }

    private func forgeries(_ records: [StolenData.Record], of victim: any Victim, on stage: Stage)
        -> [ForgedRequest]
    {
        switch stage.row.scheme {
        case .countersign: sessions(records, of: victim, on: stage)
        case .apiKey: keys(records, of: victim, on: stage)
        case .ladder, .formMD5, .tokens, .token, .openRoute, .messageSignaturesWithPassword:
            tokens(records, of: victim, on: stage)
        }
    }

    /// The key that apps sign with is no secret, since every copy of the app has it: the attack looks for the
    /// user's token.
    private func tokens(_ records: [StolenData.Record], of victim: any Victim, on stage: Stage)
        -> [ForgedRequest]
    {
        let own = records.filter { $0.mentions(victim.name) }
        let users = Set(own.flatMap(\.numbers)).sorted()
        let order = stage.theftOrder(from: victim)
        var (seen, forged) = (Set<String>(), [ForgedRequest]())
        for record in records {
            // The form of Countersign's tokens is public, so each value is tried with their prefix, too.
            for text in record.texts.flatMap({ [$0, "b_\($0)"] })
            where text.utf8.count >= 8 && seen.insert(text).inserted {
                for user in users.isEmpty ? [""] : users {
                    let token = CapturedToken(token: text, userID: user)
                    guard let request = stage.attackKit.transfer(order, token: token, key: stage.appKey)
                    else { continue }
                    forged.append(
                        ForgedRequest(with: "a token as it stands", place: record.place, request: request))
                }
            }
        }
        return forged
    }

    private func keys(_ records: [StolenData.Record], of victim: any Victim, on stage: Stage)
        -> [ForgedRequest]
    {
        var forged: [ForgedRequest] = []
        for record in records {
            for bytes in record.texts.map({ Array($0.utf8) }) + record.keys {
                let key = AppKey(id: stage.appKey.id, secret: Secret(copying: bytes.span), ladder: "")
                guard
                    let request = stage.attackKit.transfer(
                        stage.theftOrder(from: victim), token: nil, key: key)
                else {
                    continue
                }
                forged.append(
                    ForgedRequest(with: "the key of the app", place: record.place, request: request))
            }
        }
        return forged
    }

    /// A session's root yields the key that signs its requests. Each value beside a session's id is tried as
    /// root and as key.
    private func sessions(_ records: [StolenData.Record], of victim: any Victim, on stage: Stage)
        -> [ForgedRequest]
    {
        let order = stage.theftOrder(from: victim)
        var forged: [ForgedRequest] = []
        func add(_ candidates: [[UInt8]], of record: StolenData.Record) {
            for id in record.values.compactMap({ SessionID($0.span) }) {
                let token = SessionToken(id: id, epoch: 0).description
                for bytes in candidates where bytes != id.bytes {
                    let found = Secret(copying: bytes.span)
                    let derived = SessionRoot(secret: found).requestKey
                    for (key, with) in [(derived, "a session's root"), (found, "a session's key")] {
                        guard let request = stage.forgery.transfer(order, under: token, signedWith: key)
                        else {
                            continue
                        }
                        forged.append(ForgedRequest(with: with, place: record.place, request: request))
                    }
                }
            }
        }
        for record in records { add(record.keys + record.keySizedSlices, of: record) }
        return forged
    }
}
