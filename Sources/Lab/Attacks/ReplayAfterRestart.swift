/// A memory of requests that was lost with its process.
struct ReplayAfterRestart: Attack {
    let name: AttackName = "replay-after-restart"
    let column = Column.replay
    let sentence = """
        Waits until the server was killed and has come back, then sends a transfer again that the victim made \
        before.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let replay = try await Replaying(on: stage)
        guard let made = try await replay.madeRequests() else { return stage.appRefuses }
        try await stage.server.restart()
        stage.note(.server, "is killed, and comes back")
        if let loot = try await replay.gain(by: made, "sends it again after the restart") { return .succeeded(loot) }
        try await stage.requireService(to: replay.victim)
        return .failed("the server knew the request after its restart, or would not take one so old")
    }
}
