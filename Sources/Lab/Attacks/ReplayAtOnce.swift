/// The plainest replay.
struct ReplayAtOnce: Attack {
    let name: AttackName = "replay-at-once"
    let column = Column.replay
    let sentence = """
        Sends a transfer that the victim has made once more, at once; and eight copies at the same moment of one \
        that has not arrived yet.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let replay = try await Replaying(on: stage)
        guard let made = try await replay.madeRequests() else { return stage.appRefuses }
        if let loot = try await replay.gain(by: made) { return .succeeded(loot) }
        guard let held = try await replay.heldTransfer() else { return stage.appRefuses }
        stage.note(.attacker, "sends eight copies at once of one that has not arrived yet", showing: held.shown)
        let answers = try await stage.network.send(bytes: held.bytes, parallel: 8)
        let accepted = answers.filter(replay.isAccepted).count
        stage.note(.server, "answers \(answers.map { "\($0.status)" }.joined(separator: ", "))")
        guard accepted > 0 else { throw StageFault("of eight copies of an honest request none was accepted") }
        if accepted > 1 { return .succeeded("of eight copies at once \(accepted) were accepted") }
        try await stage.requireService(to: replay.victim)
        return .failed("the second copy was refused, and of eight at once one was accepted")
    }
}
