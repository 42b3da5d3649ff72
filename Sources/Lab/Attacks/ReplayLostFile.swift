/// What was seen is forgotten with the file that it stood in.
struct ReplayLostFile: Attack {
    let name: AttackName = "replay-lost-file"
    let column = Column.replay
    let sentence = """
        Sends a transfer again after the server has lost the file of requests that it has seen.
        """

    func exemption(of row: RowProfile) -> String? {
        row.server == .reference ? "such a server keeps no file of requests that it has seen" : nil
    }

    func run(on stage: Stage) async throws -> Outcome {
        let replay = try await Replaying(on: stage)
        guard let made = try await replay.madeRequests() else { return stage.appRefuses }
        guard try await stage.server.restartWithoutReplayFile() else {
            throw StageFault("the gateway has no file of requests that it could lose")
        }
        stage.note(.server, "is killed, loses the file of requests that it has seen, and comes back")
        let loot = try await replay.gain(by: made, "sends it again")
        // For as long as an old request would be fresh, the gateway serves nobody: with its file it does at once.
        try await stage.server.restartWithReplayFileFound()
        try await stage.requireService(to: replay.victim)
        return loot.map { .succeeded($0) } ?? .failed("what its memory cannot vouch for the server refuses")
    }
}
