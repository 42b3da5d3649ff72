/// What all attacks that send a request again have in common. The victim pays the thief: once willingly, for something he bought.
struct Replaying {
    let stage: Stage
    let victim: any Victim

    init(on stage: Stage, _ device: DeviceSetup = DeviceSetup()) async throws {
        self.stage = stage
        victim = try await stage.customer(device)
    }

    /// A transfer that came about, as the attacker read it. Nil where the app refused to talk to him.
    func madeTransfer() async throws -> RawRequest? {
        let (victim, thief) = (victim, stage.thief)
        let before = try stage.loot()
        let exchanges = try await stage.captured { () async throws(VictimProblem) in
            try await victim.transfer(Tampering.meant, to: thief)
        }
        guard let exchanges else { return nil }
        guard let request = exchanges.map(\.request).first(where: \.isTransfer),
            try stage.loot() == before + Tampering.meant
        else { throw StageFault("the victim's transfer did not come about, though nobody touched it") }
        return request
    }

    /// A transfer that the server has not seen. Nil where the app refused to talk to the attacker.
    func heldTransfer() async throws -> RawRequest? {
        let (victim, thief) = (victim, stage.thief)
        return try await stage.held(RawRequest.transferPath) { () async throws(VictimProblem) in
            try await victim.transfer(Tampering.meant, to: thief)
        }
    }

    /// Sends it, to the server or to one node of it. In words what came of it; nil where the thief was not paid for it.
    func gain(
        by request: RawRequest, _ did: String = "sends the same request again", toNodeAt port: UInt16? = nil
    ) async throws -> String? {
        let before = try stage.loot()
        if let port {
            stage.note(.attacker, did, showing: request.shown)
            let response = try await stage.network.send(request, toNodeAt: port)
            stage.note(.server, "answers", showing: response.shown)
        } else {
            _ = try await stage.attack(did, request)
        }
        let stolen = try stage.loot() - before
        return stolen > 0 ? "\(did): the thief was paid \(stolen) a second time" : nil
    }
}
