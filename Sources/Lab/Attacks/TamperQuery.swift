/// What stands behind the `?`.
struct TamperQuery: Attack {
    let name: AttackName = "tamper-query"
    let column = Column.tamper
    let sentence = """
        Adds parameters to the query of the victim's transfer, changes those that are there, and moves the \
        body's to it, with the thief as the payee.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let tampering = try await Tampering(on: stage)
        let theft = tampering.theft
        return try await tampering.outcome(of: [.transfer { changes($0, theft) }])
    }

    private func changes(_ request: RawRequest, _ theft: Order) -> [Tampering.Change] {
        let order = RawRequest.transfer(form: theft, namingThePayer: nil).bodyForm ?? RawForm([])
        var (beside, instead, less) = (request, request, request)
        beside.queryForm = RawForm(request.queryForm.pairs + order.pairs)
        instead.queryForm = beside.queryForm
        instead.body = []
        less.queryForm = order
        less.parameters["to"] = nil
        return [
            .init("adds another order in the query", beside),
            .init("takes the body off, and puts another order into the query", instead),
            .init("takes the payee from the parameters, and names another in the query", less),
        ]
    }
}
