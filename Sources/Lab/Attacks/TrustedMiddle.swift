import Synchronization

/// The proxy of a company, a school, a dubious app: its authority was installed on the device.
struct TrustedMiddle: Attack {
    let name: AttackName = "mitm"
    let column = Column.manInTheMiddle
    let sentence =
        "Stands between app and server, in TLS under a certificate of an authority that the device trusts, changes the payee of a transfer, and uses what TLS was to hide."

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.customer()
        let shop = try stage.newShop()
        let before = try stage.loot()
        let thief = stage.thief
        try await stage.network.interpose(by: stage.network.tools.middle) { request, forward in
            try? forward(request.isTransfer ? request.paying(thief) : request)
        }
        let problem = await Result { () async throws(VictimProblem) in
            _ = try await victim.balance()
            try await victim.transfer(Tampering.meant, to: shop)
        }
        let seen = stage.network.interposed
        stage.network.beHonest()
        if case .failure(let problem) = problem, await stage.isRefused(problem) { return stage.appRefuses }
        guard let first = seen.exchanges.first else { throw StageFault("nothing came to the man in the middle") }
        stage.note(.victim, "sends to whom it takes for the bank", showing: first.request.shown)
        if let answer = first.response { stage.note(.server, "answers", showing: answer.shown) }
        for exchange in seen.exchanges where exchange.request.isTransfer {
            let changed = exchange.request.paying(thief)
            stage.note(.attacker, "changes the payee on the way", showing: changed.shown)
            if let answer = exchange.response { stage.note(.server, "answers", showing: answer.shown) }
        }
        let stolen = try stage.loot() - before
        if stolen > 0 { return .succeeded("a transfer to a shop, changed on its way, paid the thief \(stolen)") }
        return try await use(seen.exchanges, of: victim, on: stage)
    }

    private func use(_ exchanges: [RawExchange], of victim: any Victim, on stage: Stage) async throws -> Outcome {
        if let loot = try await stage.robbed(victim, by: exchanges) { return .succeeded(loot) }
        let card = try stage.bank.secret(of: victim.name)
        if case .tls = stage.row.transport, exchanges.contains(where: { $0.response?.text.contains(card) ?? false }) {
            return .succeeded("read the victim's card number inside TLS, which was to hide it")
        }
        try await stage.requireService(to: victim)
        return .failed("\(exchanges.count) requests read, none of which could be changed or used")
    }
}

extension Result {
    /// What came of work that takes its time.
    fileprivate init(_ work: () async throws(Failure) -> Success) async {
        do throws(Failure) {
            self = .success(try await work())
        } catch {
            self = .failure(error)
        }
    }
}
