/// The proxy of a company, a school, a dubious app: its authority was installed on the device. Without TLS, whoever is on the way.
struct TrustedMiddle: Attack {
    let name: AttackName = "mitm"
    let column = Column.manInTheMiddle
    let sentence = """
        Stands between app and server, in TLS under a certificate of an authority that the device trusts: changes the payee of a transfer \
        by all that the scheme leaves open, has it carried out twice, uses what was read, and reads what TLS was to hide.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let tampering = try await Tampering(on: stage)
        let (victim, shop, thief) = (tampering.victim, tampering.shop, stage.thief)
        let before = try stage.loot()
        let means = stage.network.tools.middle
        stage.note(.attacker, "stands in the middle with \(means)")
        try await stage.network.interpose(by: means) { request, forward in
            try? forward(request.isTransfer ? request.paying(thief) : request)
        }
        var problem: VictimProblem?
        do throws(VictimProblem) {
            _ = try await victim.balance()
            try await victim.transfer(Tampering.meant, to: shop)
        } catch {
            problem = error
        }
        let seen = stage.network.interposed
        stage.network.beHonest()
        if await stage.isRefused(problem) { return stage.appRefuses }
        guard !seen.exchanges.isEmpty else { throw StageFault("nothing came to the man in the middle") }
        for exchange in seen.exchanges {
            stage.note(.victim, "sends to whom it takes for the bank", showing: exchange.request.shown)
            if exchange.request.isTransfer {
                stage.note(.attacker, "changes the payee", showing: exchange.request.paying(thief).shown)
            }
            if let answer = exchange.response { stage.note(.server, "answers", showing: answer.shown) }
        }
        let stolen = try stage.loot() - before
        if stolen > 0 { return .succeeded("a transfer to a shop, changed on its way, paid the thief \(stolen)") }
        if let gain = try await gain(from: seen.exchanges, tampering) { return .succeeded(gain) }
        try await stage.requireService(to: victim)
        return .failed("requests were read, and none of them could be changed or used: \(seen.exchanges.count)")
    }

    private func gain(from exchanges: [RawExchange], _ tampering: Tampering) async throws -> String? {
        let (stage, victim) = (tampering.stage, tampering.victim)
        for ambiguity in stage.craft.ambiguities {
            guard case .victimsTransfer = ambiguity.bait else { continue }
            // Each variant on a request of its own: one that is let through without harm uses up its nonce.
            var tried = 0
            while let held = try await tampering.held(.transfer, extra: tried) {
                let variants = ambiguity.apply(held, tampering.theft)
                guard tried < variants.count else { break }
                let change = Tampering.Change("\(ambiguity.name): \(ambiguity.sentence)", variants[tried])
                if let gain = try await tampering.gain(by: change, insteadOf: .transfer, extra: tried) { return gain }
                tried += 1
            }
        }
        if let held = try await tampering.held(.transfer) {
            let before = try stage.bank.balance(of: victim.name)
            for turn in ["lets the victim's transfer go on", "sends it once more"] {
                _ = try await stage.attack(turn, held)
            }
            let paid = before - (try stage.bank.balance(of: victim.name))
            if paid > Tampering.meant { return "had a transfer carried out twice: the victim paid \(paid)" }
        }
        if let loot = try await stage.robbed(victim, by: exchanges) { return loot }
        let card = try stage.bank.secret(of: victim.name)
        guard stage.row.transport != .plain, exchanges.contains(where: { $0.response?.text.contains(card) ?? false })
        else {
            return nil
        }
        return "read the victim's card number inside TLS, which was to hide it"
    }
}
