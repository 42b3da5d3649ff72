import CountersignWire

/// What auth-v1, auth-v2 and auth-v4 leave open. Source: docs/protocol.md, their sections.
enum AuthAmbiguities {
    private static let joinV1 = UnescapedJoin { $0 == "auth_signature" }
    private static let joinV2 = UnescapedJoin { $0.hasPrefix("auth_") }

    static let authV1 = [
        ampersand(joinV1), joinV1.swallowing, besideQuery,
        Ambiguity("key-case", "writes the payee's parameter twice, in two cases", apply: cases), twice,
    ]

    static let authV2 = [ampersand(joinV2), joinV2.swallowing, besideQuery, twice]

    static let authV4 = [
        Ambiguity("member-twice", "writes the payee's member twice", apply: membersTwice),
        Ambiguity("key-case", "writes the payee's member twice, in two cases", apply: memberCases),
    ]

    private static let twice = Ambiguity("parameter-twice", "writes the payee's parameter twice") { request, order in
        spelled(request, order, ["to"])
    }

    private static let besideQuery = Ambiguity(
        "body-beside-query", "moves what is signed to the query, and puts a body of its own beside it",
        apply: bodyBesideQuery)

    /// Anybody with the app has it sign what he types: with somebody else's name in it, and `v` for what the app adds.
    private static func ampersand(_ join: UnescapedJoin) -> Ambiguity {
        Ambiguity(
            "ampersand-in-value",
            "has its own app sign a payee that holds the victim's name, and reads it as parameters",
            bait: .ownTransfer { order, _ in "\(order.payee)&user=\(order.payer)&v=" }
        ) { request, _ in
            guard let form = join.recut(request.parameters) else { return [] }
            return [request.with(form)]
        }
    }

    private static func cases(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        spelled(request, order, ["TO", "To"])
    }

    /// The genuine payee under each of the names, before and behind the other's `to`, and the other way round.
    private static func spelled(_ request: RawRequest, _ order: Order, _ names: [String]) -> [RawRequest] {
        guard let payee = request.parameters["to"] else { return [] }
        let rest = request.parameters.pairs.filter { $0.name != "to" }
        var requests: [RawRequest] = []
        for name in names {
            for (first, second) in [("to", name), (name, "to")] {
                let other = RawForm.Pair(first, order.payee)
                let genuine = RawForm.Pair(second, payee)
                requests.append(request.with(RawForm([other, genuine] + rest)))
                requests.append(request.with(RawForm([genuine, other] + rest)))
            }
        }
        return requests
    }

    private static func bodyBesideQuery(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        var bare = request
        bare.queryForm = request.parameters
        var form = bare
        let own = RawRequest.transfer(form: order, namingThePayer: order.payer)
        form.bodyForm = own.bodyForm
        let json = RawRequest.transfer(json: order, namingThePayer: order.payer)
        var members = bare
        members.fields["Content-Type"] = "application/json"
        members.body = json.body
        return [form, members]
    }

    private static func membersTwice(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        spelledMembers(request, order, ["to"])
    }

    private static func memberCases(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        spelledMembers(request, order, ["TO", "To"])
    }

    static func spelledMembers(_ request: RawRequest, _ order: Order, _ names: [String]) -> [RawRequest] {
        guard let members = request.members, let payee = members["to"] else { return [] }
        let rest = members.members.filter { $0.name != "to" }
        let text = JSONValue.string(order.payee).text
        var requests: [RawRequest] = []
        for name in names {
            for (first, second) in [("to", name), (name, "to")] {
                let other = RawMembers.Member(first, text)
                let genuine = RawMembers.Member(second, payee)
                requests.append(request.with(RawMembers([other, genuine] + rest)))
                requests.append(request.with(RawMembers([genuine, other] + rest)))
            }
        }
        return requests
    }
}
