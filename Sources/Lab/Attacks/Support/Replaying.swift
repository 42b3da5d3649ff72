/// What all attacks that send a request again have in common. The victim pays the thief: once willingly, for something he bought.
struct Replaying {
    /// What is paid in a transfer that is held back: another amount, since some schemes cannot tell two equal calls within a second apart.
    static let heldAmount = Tampering.meant + 1

    let stage: Stage
    let victim: any Victim

    init(on stage: Stage, _ device: DeviceSetup = DeviceSetup()) async throws {
        self.stage = stage
        victim = try await stage.customer(device)
    }

    /// A transfer that came about, as the attacker read it; where that bears an idempotency key, which alone would keep the money, a look at
    /// the balance, too. Nil where the app refused to talk to him.
    func madeRequests() async throws -> [RawRequest]? {
        let (victim, thief) = (victim, stage.thief)
        let before = try stage.loot()
        let exchanges = try await stage.captured { () async throws(VictimProblem) in
            try await victim.transfer(Tampering.meant, to: thief)
        }
        guard let exchanges else { return nil }
        guard let transfer = exchanges.map(\.request).first(where: \.isTransfer),
            try stage.loot() == before + Tampering.meant
        else { throw StageFault("the victim's transfer did not come about, though nobody touched it") }
        guard transfer.fields["Idempotency-Key"] != nil else { return [transfer] }
        let looks = try await stage.captured { () async throws(VictimProblem) in _ = try await victim.balance() }
        return [transfer] + (looks ?? []).map(\.request).filter { $0.path == RawRequest.balancePath }
    }

    /// A transfer that the server has not seen. Nil where the app refused to talk to the attacker.
    func heldTransfer() async throws -> RawRequest? {
        let (victim, thief) = (victim, stage.thief)
        return try await stage.held(RawRequest.transferPath) { () async throws(VictimProblem) in
            try await victim.transfer(Replaying.heldAmount, to: thief)
        }
    }

    /// Sends them, to the server or to one node of it. In words what came of the first that was taken; nil where each was refused.
    func gain(
        by requests: [RawRequest], _ did: String = "sends the same request again", toNodeAt port: UInt16? = nil
    ) async throws -> String? {
        for request in requests {
            let before = try stage.loot()
            stage.note(.attacker, did, showing: request.shown)
            let response =
                if let port { try await stage.network.send(request, toNodeAt: port) } else {
                    try await stage.network.send(request)
                }
            stage.note(.server, "answers", showing: response.shown)
            let stolen = try stage.loot() - before
            if stolen > 0 { return "\(did): the thief was paid \(stolen)" }
            if isAccepted(response) { return "\(did): it was accepted, and answered like the first" }
        }
        return nil
    }

    /// Whether it is the bank's answer, of now or as it was kept, and no refusal.
    func isAccepted(_ response: RawResponse) -> Bool {
        response.member("moved") != nil || response.member("card") != nil
    }
}
