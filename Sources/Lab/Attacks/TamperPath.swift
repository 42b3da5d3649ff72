/// What was meant for one route, at another.
struct TamperPath: Attack {
    let name: AttackName = "tamper-path"
    let column = Column.tamper
    let sentence = """
        Sends the victim's request to another path: a transfer to where the card number is told, a look at the \
        balance to where money is moved; also by fields that proxies take paths from.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let tampering = try await Tampering(on: stage)
        let theft = tampering.theft
        return try await tampering.outcome(of: [.transfer(elsewhere), .reading { intoTransfer($0, theft) }])
    }

    private func elsewhere(_ request: RawRequest) -> [Tampering.Change] {
        var direct = request
        direct.target = RawRequest.balancePath
        var changes = [Tampering.Change("sends a transfer to \(RawRequest.balancePath)", direct)]
        for field in ["X-Original-Path", "X-Original-URL", "X-Rewrite-URL"] {
            var (there, here) = (direct, request)
            there.fields[field] = RawRequest.transferPath
            here.fields[field] = RawRequest.balancePath
            changes.append(.init("sends it there, and names the signed path in \(field)", there))
            changes.append(.init("names the other path in \(field)", here))
        }
        return changes
    }

    /// The signed parameters go where a POST has them; the order stands in the query beside them.
    private func intoTransfer(_ request: RawRequest, _ theft: Order) -> [Tampering.Change] {
        let order = RawRequest.transfer(form: theft, namingThePayer: nil).bodyForm ?? RawForm([])
        var post = request
        post.method = "POST"
        post.target = RawRequest.transferPath
        post.queryForm = order
        post.bodyForm = request.queryForm
        var appended = request
        appended.target = RawRequest.transferPath
        appended.queryForm = RawForm(request.queryForm.pairs + order.pairs)
        return [
            .init("makes a transfer of a look at the balance, with the order in the query", post),
            .init("sends a look at the balance to \(RawRequest.transferPath), with an order behind it", appended),
        ]
    }
}
