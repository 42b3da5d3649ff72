/// The plainest replay.
struct ReplayAtOnce: Attack {
    let name: AttackName = "replay-at-once"
    let column = Column.replay
    let sentence =
        "Sends a transfer that the victim has made once more, at once; and eight copies at the same moment of one that has not arrived yet."

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let replay = try await Replaying(on: stage)
        guard let made = try await replay.madeTransfer() else { return stage.appRefuses }
        if let loot = try await replay.gain(by: made) { return .succeeded(loot) }
        guard let held = try await replay.heldTransfer() else { return stage.appRefuses }
        let before = try stage.loot()
        stage.note(.attacker, "sends eight copies at once of one that has not arrived yet", showing: held.shown)
        let answers = try await stage.network.send(bytes: held.bytes, parallel: 8)
        let times = (try stage.loot() - before) / Tampering.meant
        stage.note(
            .server, "answers \(answers.map { "\($0.status)" }.joined(separator: ", ")), and pays \(times) times")
        if times > 1 { return .succeeded("of eight copies at once \(times) were carried out") }
        try await stage.requireService(to: replay.victim)
        return .failed("the second copy was refused, and of eight at once \(times) carried out")
    }
}
