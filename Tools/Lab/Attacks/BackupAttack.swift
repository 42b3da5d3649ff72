/// A backup is copied, stored in a cloud, and opened by an attacker that guesses its password.
struct BackupAttack: Attack {
    let name: AttackName = "backup"
    let column = Column.backup
    let sentence =
        "Reads everything that a backup of the victim's device has, and uses it from another device."

    /// The gateway accepts ten unknown devices' login attempts for one account; the rest are for
    /// ``StolenValueTrial``.
    private static let mostLogins = 8
    private static let mostTokens = 40

    func exemption(of row: RowProfile) -> String? {
        row.hasPasswords ? nil : "the app keeps nothing of its user: it signs with its own key"
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.signedInVictim()
        let loot = try StolenData(backupOf: victim.folder, into: "\(stage.folder)/backup-of-\(victim.name)")
        stage.note(
            .attacker,
            action: "has a backup of the device, and opens what can be opened with keys that lie in it",
            showing: loot.records.map(\.shown).joined(separator: "\n"))
        if let place = try await signIn(with: loot, as: victim, on: stage) {
            return .succeeded("what lies in `\(place)` signs in on another device, and moves money")
        }
        if let place = try await StolenValueTrial(loot, as: victim, on: stage).place {
            return .succeeded("what lies in `\(place)` is the password, and moves money from another device")
        }
        let (place, tries) = try await useTokens(of: loot, as: victim, on: stage)
        if let place {
            return .succeeded("a token that lies in `\(place)` is taken from another device, and moves money")
        }
        let ours = stage.row.isOurs ? "; the vault's key is not in it" : ""
        return .failed(
            "nothing in \(loot.records.count) files and items is a password, or one of \(tries) tokens, that "
                + "is taken\(ours)"
        )
    }

    private func signIn(with loot: StolenData, as victim: any Victim, on stage: Stage) async throws -> String?
    {
        var tried: Set<[UInt8]> = []
        for record in loot.records {
            for text in record.texts where text != victim.name {
                let stored = CapturedLogin(name: victim.name, value: text)
                let others = [
                    stage.attackKit.login(stored, key: stage.appKey),
                    stage.attackKit.login(stored: stored, key: stage.appKey),
                ]
                let typed = stage.attackKit.logins(name: victim.name, password: text, key: stage.appKey)
                for login in typed + others.compactMap(\.self) where tried.insert(login.bytes).inserted {
                    guard tried.count <= BackupAttack.mostLogins else { return nil }
                    if case .paid = try await stage.signIn(with: login, as: victim) { return record.place }
                }
            }
        }
        return nil
    }

    private func useTokens(
        of loot: StolenData, as victim: any Victim, on stage: Stage
    ) async throws -> (place: String?, tries: Int) {
        var tries = 0
        for record in loot.records {
            for token in record.tokens.prefix(BackupAttack.mostTokens) {
                for request in stage.transfers(bearing: token, of: victim) {
                    tries += 1
                    if try await stage.paysThief(request) { return (record.place, tries) }
                }
            }
        }
        return (nil, tries)
    }
}
