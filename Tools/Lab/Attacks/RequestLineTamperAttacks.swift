/// Changes the method, which decides about repetition by caches and about rules in front of a backend.
struct TamperMethodAttack: Attack {
    let name: AttackName = "tamper-method"
    let column = Column.tamper
    let sentence = """
        Sends the victim's transfer by another method than the app did: as a GET, with its parameters in the \
        query, and as a PUT.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let tampering = try await TamperScenario(on: stage, ordered: 0)
        return try await tampering.outcome(of: [.transfer(changes)])
    }

    private func changes(_ request: RawRequest) -> [TamperScenario.Change] {
        var (moved, bodied, put, overridden) = (request, request, request, request)
        moved.method = "GET"
        if let form = request.bodyForm {
            moved.queryForm.pairs += form.pairs
            moved.bodyForm = nil
        }
        bodied.method = "GET"
        put.method = "PUT"
        overridden.method = "GET"
        overridden.fields["X-HTTP-Method-Override"] = "POST"
        return [
            .init("sends the transfer as a GET, all in its query", request: moved),
            .init("sends the transfer as a GET with a body", request: bodied),
            .init("sends the transfer as a PUT", request: put),
            .init("sends the transfer as a GET with the method in a field", request: overridden),
        ]
    }
}

/// Sends a request to another route than its own.
struct TamperPathAttack: Attack {
    let name: AttackName = "tamper-path"
    let column = Column.tamper
    let sentence = """
        Sends the victim's request to another path: a transfer to where the card number is told, a look at \
        the balance to where money is moved; also by fields that proxies take paths from.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let tampering = try await TamperScenario(on: stage)
        let theft = tampering.theft
        return try await tampering.outcome(of: [
            .transfer(elsewhere), .balance { changesIntoTransfer($0, theft: theft) },
        ])
    }

    private func elsewhere(_ request: RawRequest) -> [TamperScenario.Change] {
        var direct = request
        direct.target = RawRequest.balancePath
        var changes = [
            TamperScenario.Change("sends a transfer to \(RawRequest.balancePath)", request: direct)
        ]
        for field in ["X-Original-Path", "X-Original-URL", "X-Rewrite-URL"] {
            var (there, here) = (direct, request)
            there.fields[field] = RawRequest.transferPath
            here.fields[field] = RawRequest.balancePath
            changes.append(.init("sends it there, and names the signed path in \(field)", request: there))
            changes.append(.init("names the other path in \(field)", request: here))
        }
        return changes
    }

    /// The signed parameters go where a POST has them; the order stands in the query.
    private func changesIntoTransfer(_ request: RawRequest, theft: TransferOrder) -> [TamperScenario.Change] {
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
            .init("makes a transfer of a look at the balance, with the order in the query", request: post),
            .init(
                "sends a look at the balance to \(RawRequest.transferPath), with an order behind it",
                request: appended),
        ]
    }
}

/// Changes the query.
struct TamperQueryAttack: Attack {
    let name: AttackName = "tamper-query"
    let column = Column.tamper
    let sentence = """
        Adds parameters to the query of the victim's transfer, changes those that are there, and moves the \
        body's to it, with the thief as the payee.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let tampering = try await TamperScenario(on: stage)
        let theft = tampering.theft
        return try await tampering.outcome(of: [.transfer { changes(to: $0, theft: theft) }])
    }

    private func changes(to request: RawRequest, theft: TransferOrder) -> [TamperScenario.Change] {
        let order = RawRequest.transfer(form: theft, namingThePayer: nil).bodyForm ?? RawForm([])
        var (beside, instead, less) = (request, request, request)
        beside.queryForm = RawForm(request.queryForm.pairs + order.pairs)
        instead.queryForm = beside.queryForm
        instead.body = []
        less.queryForm = order
        less.parameters["to"] = nil
        return [
            .init("adds another order in the query", request: beside),
            .init("takes the body off, and puts another order into the query", request: instead),
            .init("takes the payee from the parameters, and names another in the query", request: less),
        ]
    }
}
