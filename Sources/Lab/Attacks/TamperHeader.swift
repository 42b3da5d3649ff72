/// Fields that the app did not sign, and that something behind may act on.
struct TamperHeader: Attack {
    let name: AttackName = "tamper-header"
    let column = Column.tamper
    let sentence = """
        Adds fields to a signed request: whose account it is about, as gateways tell backends; another type for \
        its body; another's session beside the genuine one.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let accomplice = try await stage.customer()
        let tampering = try await Tampering(on: stage)
        let (victim, thief) = (tampering.victim, stage.thief)
        var requests: [RawRequest] = []
        for _ in TamperHeader.claims(victim.name) {
            let held = try await stage.held(RawRequest.transferPath) { () async throws(VictimProblem) in
                try await accomplice.transfer(Tampering.wanted, to: thief)
            }
            guard let held else { return stage.appRefuses }
            requests.append(held)
        }
        for (claim, request) in zip(TamperHeader.claims(victim.name), requests) {
            var claiming = request
            claiming.fields.lines.append(.init(claim.name, claim.value))
            let before = try stage.bank.balance(of: victim.name)
            let did = "says in a field of his own request whose it is: \(claim.name)"
            _ = try await stage.attack(did, claiming)
            let lost = before - (try stage.bank.balance(of: victim.name))
            if lost > 0 { return .succeeded("\(did): the victim paid \(lost)") }
        }
        let theft = tampering.theft
        return try await tampering.outcome(of: [.transfer { retyped($0, theft) }])
    }

    private static func claims(_ name: String) -> [RawFields.Line] {
        ["Countersign-Account", "Countersign_Account", "X-Forwarded-User", "X-User"].map { .init($0, name) }
    }

    /// A second reading of the body: the genuine one as text, and another order where a reader of forms or JSON finds it.
    private func retyped(_ request: RawRequest, _ theft: Order) -> [Tampering.Change] {
        var (typed, overridden) = (request, request)
        typed.fields.lines.append(.init("Content-Type", "text/plain"))
        typed.queryForm = RawRequest.transfer(form: theft, namingThePayer: nil).bodyForm ?? RawForm([])
        overridden.fields["Content-Type"] = "text/plain"
        overridden.queryForm = typed.queryForm
        return [
            .init("says a second time of which type the body is, and orders in the query", typed),
            .init("says that the body is plain text, and orders in the query", overridden),
        ]
    }
}
