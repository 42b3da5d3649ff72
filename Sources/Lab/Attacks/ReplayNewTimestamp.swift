import Glibc

/// A request that has long been too old, made young.
struct ReplayNewTimestamp: Attack {
    let name: AttackName = "replay-new-timestamp"
    let column = Column.replay
    let sentence = "Sends an old transfer of the victim's with the time of now in it, all else as it was."

    /// Seconds: beyond every window that there is.
    private static let age: Int64 = 13 * 3_600

    func exemption(of row: RowProfile) -> String? {
        switch (row.scheme, row.server) {
        case (.ladder, .reference), (.tokens, .reference), (.token, _), (.openRoute, _): "its requests bear no time"
        default: nil
        }
    }

    func run(on stage: Stage) async throws -> Outcome {
        let replay = try await Replaying(on: stage)
        // Who has no session can have made it long ago, by a clock of then. A session's own requests are made now, and
        // given a time that is another: whether it is signed is the same question.
        let isOld = !stage.row.hasPasswords
        guard let held = try await isOld ? oldTransfer(on: stage) : replay.heldTransfer() else {
            return stage.appRefuses
        }
        if isOld, let loot = try await replay.gain(by: [held], "sends a transfer made 13 hours ago") {
            return .succeeded(loot)
        }
        let now = Int64(time(nil))
        guard let young = stage.craft.restamped(held, at: now) else {
            throw StageFault("there is no time in the victim's request")
        }
        let request = young == held ? stage.craft.restamped(held, at: now + 1) ?? young : young
        if let loot = try await replay.gain(by: [request], "sends it with the time of now") { return .succeeded(loot) }
        try await stage.requireService(to: replay.victim)
        return .failed("the time is signed: with another one the signature does not hold")
    }

    private func oldTransfer(on stage: Stage) async throws -> RawRequest? {
        var device = DeviceSetup()
        device.behind = ReplayNewTimestamp.age
        let (victim, thief) = (try await stage.newVictim(device), stage.thief)
        return try await stage.held(RawRequest.transferPath) { () async throws(VictimProblem) in
            try await victim.transfer(Tampering.meant, to: thief)
        }
    }
}
