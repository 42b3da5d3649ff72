/// Methods are what caches repeat by, and what rules in front of a backend go by.
struct TamperMethod: Attack {
    let name: AttackName = "tamper-method"
    let column = Column.tamper
    let sentence = """
        Sends the victim's transfer by another method than the app did: as a GET, with its parameters in the \
        query, and as a PUT.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let tampering = try await Tampering(on: stage, ordered: 0)
        return try await tampering.outcome(of: [.transfer(changes)])
    }

    private func changes(_ request: RawRequest) -> [Tampering.Change] {
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
            .init("sends the transfer as a GET, all in its query", moved),
            .init("sends the transfer as a GET with a body", bodied),
            .init("sends the transfer as a PUT", put),
            .init("sends the transfer as a GET with the method in a field", overridden),
        ]
    }
}
