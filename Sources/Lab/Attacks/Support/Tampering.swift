/// What all attacks that change a request on its way have in common.
struct Tampering {
    /// A changed request, and what was done to it.
    struct Change: Sendable {
        let did: String
        let request: RawRequest

        init(_ did: String, _ request: RawRequest) {
            self.did = did
            self.request = request
        }
    }

    /// What the victim was about to do when his request was taken from him, and what it is made into.
    struct Plan {
        enum Deed { case transfer, reading }

        let deed: Deed
        let changes: (RawRequest) -> [Change]

        /// The victim pays a shop ``Tampering/meant``.
        static func transfer(_ changes: @escaping (RawRequest) -> [Change]) -> Plan {
            Plan(deed: .transfer, changes: changes)
        }

        /// The victim looks at his balance.
        static func reading(_ changes: @escaping (RawRequest) -> [Change]) -> Plan {
            Plan(deed: .reading, changes: changes)
        }
    }

    /// The amount that the victim means to pay, and the one that the thief would like.
    static let meant = 5
    static let wanted = 400

    let stage: Stage
    let victim: any Victim
    let shop: String
    /// What the victim may lose without its being the attacker's doing.
    private let ordered: Int

    /// With somebody to rob, and a shop where he buys. `ordered` is 0 where the transfer itself must not come about.
    init(on stage: Stage, ordered: Int = Tampering.meant) async throws {
        self.stage = stage
        self.ordered = ordered
        victim = try await stage.customer()
        shop = try stage.newShop()
    }

    /// What the thief wants done.
    var theft: Order { Order(payer: victim.name, payee: stage.thief, amount: Tampering.wanted) }

    /// Tries one change after the other, each on a request of its own that the server has not seen: nothing but the change can have it refused,
    /// and one that is let through without harm uses up its own request only. The victim is to be served afterwards, or nothing was shown.
    func outcome(of plans: [Plan]) async throws -> Outcome {
        var tried = 0
        for plan in plans {
            guard var request = try await held(plan.deed) else { return stage.appRefuses }
            let count = plan.changes(request).count
            for index in 0..<count {
                if index > 0 {
                    guard let another = try await held(plan.deed, extra: tried) else { return stage.appRefuses }
                    request = another
                }
                let changes = plan.changes(request)
                guard index < changes.count else { break }
                if let gain = try await gain(by: changes[index], insteadOf: plan.deed, extra: index > 0 ? tried : 0) {
                    return .succeeded(gain)
                }
                tried += 1
            }
        }
        guard tried > 0 else { throw StageFault("there was nothing to change") }
        try await stage.requireService(to: victim)
        return .failed("\(tried) changed requests, each refused or without effect")
    }

    /// The victim's request, which the server has not seen. Nil where the app refused to talk to the attacker.
    /// `extra` is what is paid besides: some schemes cannot tell two equal calls within a second apart.
    func held(_ deed: Plan.Deed, extra: Int = 0) async throws -> RawRequest? {
        let (victim, shop) = (victim, shop)
        switch deed {
        case .transfer:
            return try await stage.held(RawRequest.transferPath) { () async throws(VictimProblem) in
                try await victim.transfer(Tampering.meant + extra, to: shop)
            }
        case .reading:
            return try await stage.held(RawRequest.balancePath) { () async throws(VictimProblem) in
                _ = try await victim.balance()
            }
        }
    }

    /// What came of it, in words; nil where the thief was not paid, the victim lost no more than he ordered, and nobody was told his secret
    /// who had asked for something else.
    func gain(by change: Change, insteadOf deed: Plan.Deed, extra: Int = 0) async throws -> String? {
        let before = (thief: try stage.loot(), victim: try stage.bank.balance(of: victim.name))
        let response = try await stage.attack(change.did, change.request)
        let stolen = try stage.loot() - before.thief
        let lost = before.victim - (try stage.bank.balance(of: victim.name))
        if stolen > 0 { return "\(change.did): the thief was paid \(stolen)" }
        let allowed = ordered > 0 ? ordered + extra : 0
        if lost > allowed { return "\(change.did): the victim paid \(lost), and had ordered \(allowed) at most" }
        guard deed == .transfer, response.text.contains(try stage.bank.secret(of: victim.name)) else { return nil }
        return "\(change.did): a signed transfer was answered with the victim's card number"
    }
}
