import Glibc

/// The common part of attacks that send a request again. The victim pays the thief once, for a purchase.
struct ReplayScenario {
    /// The amount of a transfer that is intercepted: a different one, since some schemes cannot tell two
    /// equal calls within one second apart.
    static let interceptedAmount = TamperScenario.intendedAmount + 1

    let stage: Stage
    let victim: any Victim

    init(on stage: Stage, device: DeviceSetup = DeviceSetup()) async throws {
        self.stage = stage
        victim = try await stage.customer(device)
    }

    /// A completed transfer, as the attacker read it. Where it carries an idempotency key, which alone would
    /// protect the money, a request for the balance, too. Nil where the app refused the attacker's
    /// certificate.
    func madeRequests() async throws -> [RawRequest]? {
        let (victim, thief) = (victim, stage.thief)
        let before = try stage.thiefBalance()
        let exchanges = try await stage.captureExchanges { () async throws(VictimError) in
            try await victim.transfer(TamperScenario.intendedAmount, to: thief)
        }
        guard let exchanges else { return nil }
        guard let transfer = exchanges.map(\.request).first(where: \.isTransfer),
            try stage.thiefBalance() == before + TamperScenario.intendedAmount
        else { throw LabError("the victim's transfer failed without an attack") }
        guard transfer.fields["Idempotency-Key"] != nil else { return [transfer] }
        let looks = try await stage.captureExchanges { () async throws(VictimError) in
            _ = try await victim.balance()
        }
        return [transfer] + (looks ?? []).map(\.request).filter { $0.path == RawRequest.balancePath }
    }

    /// A transfer that the server has not seen. Nil where the app refused the attacker's certificate.
    func interceptedTransfer() async throws -> RawRequest? {
        let (victim, thief) = (victim, stage.thief)
        return try await stage.interceptRequest(to: RawRequest.transferPath) { () async throws(VictimError) in
            try await victim.transfer(ReplayScenario.interceptedAmount, to: thief)
        }
    }

    /// Sends the requests, to the server or to one node of it. Describes the first one that was accepted; nil
    /// where each was refused.
    func gain(
        bySending requests: [RawRequest], action did: String = "sends the same request again",
        toNodeAt port: UInt16? = nil
    ) async throws -> String? {
        for request in requests {
            let before = try stage.thiefBalance()
            stage.note(.attacker, action: did, showing: request.shown)
            let response =
                if let port { try await stage.network.send(request, toNodeAt: port) } else {
                    try await stage.network.send(request)
                }
            stage.note(.server, action: "answers", showing: response.shown)
            let stolen = try stage.thiefBalance() - before
            if stolen > 0 { return "\(did): the thief was paid \(stolen)" }
            if isAccepted(response) { return "\(did): it was accepted, and answered like the first" }
        }
        return nil
    }

    /// Whether it is the bank's response, current or repeated, and no refusal.
    func isAccepted(_ response: RawResponse) -> Bool {
        response.member("moved") != nil || response.member("card") != nil
    }
}

/// Sends a request again at once, and copies in parallel.
struct ReplayAtOnceAttack: Attack {
    let name: AttackName = "replay-at-once"
    let column = Column.replay
    let sentence = """
        Sends a transfer that the victim has made once more, at once; and eight copies at the same moment of \
        one that has not arrived yet.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let replay = try await ReplayScenario(on: stage)
        guard let made = try await replay.madeRequests() else { return stage.appRefusesCertificate }
        if let loot = try await replay.gain(bySending: made) { return .succeeded(loot) }
        guard let held = try await replay.interceptedTransfer() else { return stage.appRefusesCertificate }
        stage.note(
            .attacker, action: "sends eight copies at once of one that has not arrived yet",
            showing: held.shown)
        let answers = try await stage.network.send(bytes: held.bytes, parallel: 8)
        let accepted = answers.filter(replay.isAccepted).count
        stage.note(.server, action: "answers \(answers.map { "\($0.status)" }.joined(separator: ", "))")
        guard accepted > 0 else { throw LabError("of eight copies of an honest request none was accepted") }
        if accepted > 1 { return .succeeded("of eight copies at once \(accepted) were accepted") }
        try await stage.requireService(to: replay.victim)
        return .failed("the second copy was refused, and of eight at once one was accepted")
    }
}

/// Sends a request again after the server's memory of seen requests was lost with its process.
struct ReplayAfterRestartAttack: Attack {
    let name: AttackName = "replay-after-restart"
    let column = Column.replay
    let sentence = """
        Waits until the server was killed and has come back, then sends a transfer again that the victim \
        made before.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let replay = try await ReplayScenario(on: stage)
        guard let made = try await replay.madeRequests() else { return stage.appRefusesCertificate }
        try await stage.server.restart()
        stage.note(.server, action: "is killed, and comes back")
        if let loot = try await replay.gain(bySending: made, action: "sends it again after the restart") {
            return .succeeded(loot)
        }
        try await stage.requireService(to: replay.victim)
        return .failed("the server knew the request after its restart, or would not take one so old")
    }
}

/// Sends a request to a second node, which may have a memory of its own.
struct ReplaySecondNodeAttack: Attack {
    let name: AttackName = "replay-second-node"
    let column = Column.replay
    let sentence = "Sends a transfer that the victim has made to a second node of the same server."

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let replay = try await ReplayScenario(on: stage)
        guard let made = try await replay.madeRequests() else { return stage.appRefusesCertificate }
        switch try await stage.server.startSecondNode() {
        case .refusedToStart(let why):
            let why = why.split(separator: "\n").joined(separator: " ")
            stage.note(.server, action: "refuses to run a second time on the same data: \(why)")
            if let loot = try await replay.gain(bySending: made) { return .succeeded(loot) }
            try await stage.requireService(to: replay.victim)
            return .failed("no second node starts on the same data (\(why)), and the first knew the request")
        case .listens(let port):
            let did = "sends it to the second node"
            if let loot = try await replay.gain(bySending: made, action: did, toNodeAt: port) {
                return .succeeded(loot)
            }
            try await stage.requireService(to: replay.victim)
            return .failed("the second node knew what the first had seen")
        }
    }
}

/// Sends a request again after the file of seen requests was lost.
struct ReplayLostFileAttack: Attack {
    let name: AttackName = "replay-lost-file"
    let column = Column.replay
    let sentence = """
        Sends a transfer again after the server has lost the file of requests that it has seen.
        """

    func exemption(of row: RowProfile) -> String? {
        row.server == .reference ? "such a server keeps no file of requests that it has seen" : nil
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let replay = try await ReplayScenario(on: stage)
        guard let made = try await replay.madeRequests() else { return stage.appRefusesCertificate }
        guard try await stage.server.restartWithoutReplayFile() else {
            throw LabError("the gateway has no file of requests that it could lose")
        }
        stage.note(.server, action: "is killed, loses the file of requests that it has seen, and comes back")
        let loot = try await replay.gain(bySending: made, action: "sends it again")
        // Without its file the gateway refuses all requests for as long as an old one would be fresh; with
        // the file it serves at once.
        try await stage.server.restartRestoringReplayFile()
        try await stage.requireService(to: replay.victim)
        return loot.map { .succeeded($0) } ?? .failed("what its memory cannot vouch for the server refuses")
    }
}

/// Sends an expired request with a current timestamp.
struct ReplayNewTimestampAttack: Attack {
    let name: AttackName = "replay-new-timestamp"
    let column = Column.replay
    let sentence = "Sends an old transfer of the victim's with the time of now in it, all else as it was."

    /// Seconds; longer than every freshness window.
    private static let age: Int64 = 13 * 3_600

    func exemption(of row: RowProfile) -> String? {
        switch (row.scheme, row.server) {
        case (.ladder, .reference), (.tokens, .reference), (.token, _), (.openRoute, _):
            "its requests bear no time"
        default: nil
        }
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let replay = try await ReplayScenario(on: stage)
        // An app without a session makes the request in the past, by a clock that is behind. A session's
        // request is made now and gets another timestamp: both show whether the timestamp is signed.
        let isOld = !stage.row.hasPasswords
        guard let held = try await isOld ? oldTransfer(on: stage) : replay.interceptedTransfer() else {
            return stage.appRefusesCertificate
        }
        if isOld,
            let loot = try await replay.gain(bySending: [held], action: "sends a transfer made 13 hours ago")
        {
            return .succeeded(loot)
        }
        let now = Int64(time(nil))
        guard let young = stage.attackKit.restamped(held, at: now) else {
            throw LabError("there is no time in the victim's request")
        }
        let request = young == held ? stage.attackKit.restamped(held, at: now + 1) ?? young : young
        if let loot = try await replay.gain(bySending: [request], action: "sends it with the time of now") {
            return .succeeded(loot)
        }
        try await stage.requireService(to: replay.victim)
        return .failed("the time is signed: with another one the signature does not hold")
    }

    private func oldTransfer(on stage: Stage) async throws -> RawRequest? {
        var device = DeviceSetup()
        device.behind = ReplayNewTimestampAttack.age
        let (victim, thief) = (try await stage.newVictim(device), stage.thief)
        return try await stage.interceptRequest(to: RawRequest.transferPath) { () async throws(VictimError) in
            try await victim.transfer(TamperScenario.intendedAmount, to: thief)
        }
    }
}
