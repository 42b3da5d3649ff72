/// A memory of requests that each node has for itself.
struct ReplaySecondNode: Attack {
    let name: AttackName = "replay-second-node"
    let column = Column.replay
    let sentence = "Sends a transfer that the victim has made to a second node of the same server."

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let replay = try await Replaying(on: stage)
        guard let made = try await replay.madeRequests() else { return stage.appRefuses }
        switch try await stage.server.secondNode() {
        case .refusedToStart(let why):
            let why = why.split(separator: "\n").joined(separator: " ")
            stage.note(.server, "refuses to run a second time on the same data: \(why)")
            if let loot = try await replay.gain(by: made) { return .succeeded(loot) }
            try await stage.requireService(to: replay.victim)
            return .failed("no second node starts on the same data (\(why)), and the first knew the request")
        case .listens(let port):
            let did = "sends it to the second node"
            if let loot = try await replay.gain(by: made, did, toNodeAt: port) { return .succeeded(loot) }
            try await stage.requireService(to: replay.victim)
            return .failed("the second node knew what the first had seen")
        }
    }
}
