/// The attacker's own name, with a certificate that is genuine for it: the app was led there by a link, a setting, a lie in the DNS.
struct TamperHost: Attack {
    let name: AttackName = "tamper-host"
    let column = Column.tamper
    let sentence = """
        Leads the app to a host of the attacker's, and passes its requests on to the server as they are: is what \
        was meant for one host taken at another?
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let known = try await stage.customer()
        let shop = try stage.newShop()
        let door = try stage.network.openDoor()
        defer { door.stop() }
        var device = DeviceSetup()
        device.host = door.host
        device.origin = "\(stage.row.transport == .plain ? "http" : "https")://\(door.host):\(door.port)"
        let led = try await stage.newVictim(device)
        stage.note(.attacker, "leads the app to \(device.origin ?? "")")
        var problem: VictimProblem?
        do throws(VictimProblem) {
            try await led.signIn()
            try await led.transfer(Tampering.meant, to: shop)
        } catch {
            problem = error
        }
        let seen = door.interposed
        for exchange in seen.exchanges.prefix(4) {
            stage.note(.victim, "sends to the attacker's host", showing: exchange.request.shown)
            if let answer = exchange.response { stage.note(.server, "answers", showing: answer.shown) }
        }
        if try stage.bank.balance(of: shop) > Bank.opening {
            return .succeeded("a transfer that was meant for \(door.host) was made, and the attacker read all of it")
        }
        try await stage.requireService(to: known)
        guard let problem else {
            throw StageFault("the app believes that it has paid, and the bank knows nothing of it")
        }
        guard seen.requests > 0 else { return .failed("the app does not talk to \(door.host): \(problem)") }
        return .failed("\(seen.requests) requests passed on, none of them taken by the server: \(problem)")
    }
}
