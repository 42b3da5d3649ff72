/// What was seen is forgotten with the file that it stood in.
struct ReplayLostFile: Attack {
    let name: AttackName = "replay-lost-file"
    let column = Column.replay
    let sentence = "Sends a transfer again after the server has lost the file of requests that it has seen."

    func exemption(of row: RowProfile) -> String? {
        row.server == .gateway ? nil : "such a server keeps no file of requests that it has seen"
    }

    func run(on stage: Stage) async throws -> Outcome {
        let replay = try await Replaying(on: stage)
        guard let made = try await replay.madeTransfer() else { return stage.appRefuses }
        guard try await stage.server.restartWithoutReplayFile() else {
            throw StageFault("the gateway has no file of requests that it could lose")
        }
        stage.note(.server, "is killed, loses the file of requests that it has seen, and comes back")
        if let loot = try await replay.gain(by: made, "sends it again") { return .succeeded(loot) }
        try await stage.requireService(to: replay.victim)
        return .failed("what its memory cannot vouch for the server refuses")
    }
}
