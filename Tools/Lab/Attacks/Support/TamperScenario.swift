/// The common part of attacks that change an intercepted request.
struct TamperScenario {
    /// A changed request, and a description of the change.
    struct Change: Sendable {
        let action: String
        let request: RawRequest

        init(_ did: String, request: RawRequest) {
            self.action = did
            self.request = request
        }
    }

    /// The victim's operation whose request is intercepted, and the changes of that request.
    struct Plan {
        enum Operation { case transfer, balance }

        let operation: Operation
        let changes: (RawRequest) -> [Change]

        /// The victim pays a shop ``TamperScenario/intendedAmount``.
        static func transfer(_ changes: @escaping (RawRequest) -> [Change]) -> Plan {
            Plan(operation: .transfer, changes: changes)
        }

        /// The victim reads the balance.
        static func balance(_ changes: @escaping (RawRequest) -> [Change]) -> Plan {
            Plan(operation: .balance, changes: changes)
        }
    }

    /// The amount that the victim intends to pay, and the amount that the attacker wants.
    static let intendedAmount = 5
    static let stolenAmount = 400

    let stage: Stage
    let victim: any Victim
    let shop: String
    /// The amount that the victim may lose without an attack.
    private let ordered: Int

    /// Creates a victim, and a shop that the victim pays. `ordered` is 0 where the transfer itself must not
    /// be made.
    init(on stage: Stage, ordered: Int = TamperScenario.intendedAmount) async throws {
        self.stage = stage
        self.ordered = ordered
        victim = try await stage.customer()
        shop = try stage.newShop()
    }

    /// The order that the attacker wants carried out.
    var theft: TransferOrder {
        TransferOrder(payer: victim.name, payee: stage.thief, amount: TamperScenario.stolenAmount)
    }

    /// Tries each change on a request of its own that the server has not seen: so only the change can be the
    /// reason for a refusal, and a harmless change that is accepted uses up only its own request. Afterwards
    /// the server must serve the victim, or the result would mean nothing.
    func outcome(of plans: [Plan]) async throws -> AttackOutcome {
        var tried = 0
        for plan in plans {
            guard var request = try await interceptedRequest(plan.operation) else {
                return stage.appRefusesCertificate
            }
            let count = plan.changes(request).count
            for index in 0..<count {
                if index > 0 {
                    guard let another = try await interceptedRequest(plan.operation, extra: tried) else {
                        return stage.appRefusesCertificate
                    }
                    request = another
                }
                let changes = plan.changes(request)
                guard index < changes.count else { break }
                if let gain = try await gain(
                    by: changes[index], insteadOf: plan.operation, extra: index > 0 ? tried : 0)
                {
                    return .succeeded(gain)
                }
                tried += 1
            }
        }
        guard tried > 0 else { throw LabError("there was nothing to change") }
        try await stage.requireService(to: victim)
        return .failed("\(tried) changed requests, each refused or without effect")
    }

    /// The victim's request, which the server has not seen. Nil where the app refused the attacker's
    /// certificate. `extra` is added to the amount: some schemes cannot tell two equal calls within one
    /// second apart.
    func interceptedRequest(_ deed: Plan.Operation, extra: Int = 0) async throws -> RawRequest? {
        let (victim, shop) = (victim, shop)
        switch deed {
        case .transfer:
            return try await stage.interceptRequest(to: RawRequest.transferPath) {
                () async throws(VictimError) in
                try await victim.transfer(TamperScenario.intendedAmount + extra, to: shop)
            }
        case .balance:
            return try await stage.interceptRequest(to: RawRequest.balancePath) {
                () async throws(VictimError) in
                _ = try await victim.balance()
            }
        }
    }

    /// Describes the gain of a change. Nil where the thief was not paid, the victim lost no more than the
    /// amount ordered, and the response to a transfer does not contain the victim's card number.
    func gain(by change: Change, insteadOf deed: Plan.Operation, extra: Int = 0) async throws -> String? {
        let before = (thief: try stage.thiefBalance(), victim: try stage.bank.balance(of: victim.name))
        let response = try await stage.attack(change.action, request: change.request)
        let stolen = try stage.thiefBalance() - before.thief
        let lost = before.victim - (try stage.bank.balance(of: victim.name))
        if stolen > 0 { return "\(change.action): the thief was paid \(stolen)" }
        let allowed = ordered > 0 ? ordered + extra : 0
        if lost > allowed {
            return "\(change.action): the victim paid \(lost), and had ordered \(allowed) at most"
        }
        guard deed == .transfer, response.text.contains(try stage.bank.cardNumber(of: victim.name)) else {
            return nil
        }
        return "\(change.action): a signed transfer was answered with the victim's card number"
    }
}
