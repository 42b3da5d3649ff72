/// Listens without changing anything. The attack succeeds if what passed lets the attacker act in the
/// victim's name or shows the password; where there is no TLS, the report adds that everything can be read.
struct EavesdropAttack: Attack {
    let name: AttackName = "eavesdrop"
    let column = Column.eavesdrop
    let sentence = """
        Listens while the victim signs in, reads the balance and pays, then uses the recorded login, token \
        or request to move the victim's money.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.newVictim()
        let listener = stage.network.tools.capture
        let tap = try await stage.network.listen(by: listener)
        stage.note(.attacker, action: "listens with \(listener)")
        do {
            try await victim.signIn()
            _ = try await victim.balance()
            try await victim.transfer(TamperScenario.intendedAmount, to: stage.thief)
        } catch {
            throw LabError("\(victim.name), while the attacker listens: \(error)")
        }
        let recording = tap.stop()
        guard !recording.connections.isEmpty else { throw LabError("the victim acted, and nothing passed") }
        stage.note(
            .victim, action: "signs in, looks at the balance and pays; what passes is",
            showing: recording.shown)
        return try await outcome(on: stage, victim: victim, recording: recording)
    }

    private func outcome(on stage: Stage, victim: any Victim, recording: Recording) async throws
        -> AttackOutcome
    {
        let card = recording.contains(try stage.bank.cardNumber(of: victim.name))
        let password = victim.password.map { recording.contains($0) } ?? false
        let read = [card ? "card number" : nil, password ? "password" : nil].compactMap { $0 }
        guard !recording.exchanges.isEmpty else {
            guard read.isEmpty else {
                return .succeeded("the \(read.joined(separator: " and ")) passed in the clear")
            }
            return .failed("nothing but TLS records passed; connections: \(recording.connections.count)")
        }
        if let loot = try await stage.stealMoney(from: victim, using: recording.exchanges) {
            return .succeeded(loot)
        }
        if let loot = try await stage.replayTransfers(in: recording.exchanges) { return .succeeded(loot) }
        if let loot = try await stage.stealMoney(from: victim, replayingLoginsOf: recording.exchanges) {
            return .succeeded(loot)
        }
        // The password is enough: it signs in on every service where the victim uses it.
        if password { return .succeeded("the password can be read in what passed") }
        try await stage.requireService(to: victim)
        let said = card ? " (the card number can be read, for there is no TLS)" : ""
        return .failed(
            "\(recording.exchanges.count) requests were read, and nothing in them lets another act\(said)")
    }
}

/// Intercepts TLS with an authority that was installed on the device, as the proxies of companies and schools
/// do, and plain connections without one.
struct ManInTheMiddleAttack: Attack {
    let name: AttackName = "mitm"
    let column = Column.manInTheMiddle
    let sentence = """
        Stands between app and server, in TLS under a certificate of an authority that the device trusts: \
        changes the payee of a transfer by all that the scheme leaves open, has it carried out twice, uses \
        what was read, and reads what TLS was to hide.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let tampering = try await TamperScenario(on: stage)
        let (victim, shop, thief) = (tampering.victim, tampering.shop, stage.thief)
        let before = try stage.thiefBalance()
        let means = stage.network.tools.middle
        stage.note(.attacker, action: "stands in the middle with \(means)")
        try await stage.network.intercept(by: means) { request, forward in
            try? forward(request.isTransfer ? request.paying(thief) : request)
        }
        var problem: VictimError?
        do {
            _ = try await victim.balance()
            try await victim.transfer(TamperScenario.intendedAmount, to: shop)
        } catch {
            problem = error
        }
        let seen = stage.network.interception
        stage.network.stopIntercepting()
        if await stage.isCertificateRefusal(problem) { return stage.appRefusesCertificate }
        guard !seen.exchanges.isEmpty else { throw LabError("nothing came to the man in the middle") }
        for exchange in seen.exchanges {
            stage.note(
                .victim, action: "sends to the supposed bank", showing: exchange.request.shown)
            if exchange.request.isTransfer {
                stage.note(
                    .attacker, action: "changes the payee", showing: exchange.request.paying(thief).shown)
            }
            if let answer = exchange.response {
                stage.note(.server, action: "answers", showing: answer.shown)
            }
        }
        let stolen = try stage.thiefBalance() - before
        if stolen > 0 {
            return .succeeded("a transfer to a shop, changed on its way, paid the thief \(stolen)")
        }
        if let gain = try await gain(from: seen.exchanges, tampering: tampering) { return .succeeded(gain) }
        try await stage.requireService(to: victim)
        return .failed(
            "requests were read, and none of them could be changed or used: \(seen.exchanges.count)")
    }

    private func gain(from exchanges: [RawExchange], tampering: TamperScenario) async throws -> String? {
        let (stage, victim) = (tampering.stage, tampering.victim)
        for ambiguity in stage.attackKit.ambiguities {
            guard case .victimsTransfer = ambiguity.source else { continue }
            // Each variant on a request of its own: a harmless variant that the server accepts uses up the
            // nonce.
            var tried = 0
            while let held = try await tampering.interceptedRequest(.transfer, extra: tried) {
                let variants = ambiguity.apply(held, tampering.theft)
                guard tried < variants.count else { break }
                let change = TamperScenario.Change(
                    "\(ambiguity.name): \(ambiguity.sentence)", request: variants[tried])
                if let gain = try await tampering.gain(by: change, insteadOf: .transfer, extra: tried) {
                    return gain
                }
                tried += 1
            }
        }
        if let held = try await tampering.interceptedRequest(.transfer) {
            let before = try stage.bank.balance(of: victim.name)
            for turn in ["lets the victim's transfer go on", "sends it once more"] {
                _ = try await stage.attack(turn, request: held)
            }
            let paid = before - (try stage.bank.balance(of: victim.name))
            if paid > TamperScenario.intendedAmount {
                return "had a transfer carried out twice: the victim paid \(paid)"
            }
        }
        if let loot = try await stage.stealMoney(from: victim, using: exchanges) { return loot }
        let card = try stage.bank.cardNumber(of: victim.name)
        guard stage.row.transport != .plain,
            exchanges.contains(where: { $0.response?.text.contains(card) ?? false })
        else {
            return nil
        }
        return "read the victim's card number inside TLS, which was to hide it"
    }
}
