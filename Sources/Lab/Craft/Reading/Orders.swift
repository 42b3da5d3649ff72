import CountersignWire

/// How the app writes a transfer. Source: the demo bank.
extension RawRequest {
    package static let transferPath = "/transfer"
    package static let balancePath = "/balance"

    package var isTransfer: Bool { path == RawRequest.transferPath && method == "POST" }

    /// A transfer as a form. The payer is written where no session says who that is.
    static func transfer(form order: Order, namingThePayer payer: String?) -> RawRequest {
        var request = RawRequest("POST", transferPath)
        let user = payer.map { [RawForm.Pair("user", $0)] } ?? []
        request.bodyForm = RawForm(user + [.init("to", order.payee), .init("amount", "\(order.amount)")])
        return request
    }

    /// A transfer as JSON.
    static func transfer(json order: Order, namingThePayer payer: String?) -> RawRequest {
        let user = payer.map { [RawMembers.Member("user", JSONValue.string($0).text)] } ?? []
        let to = RawMembers.Member("to", JSONValue.string(order.payee).text)
        return RawRequest("POST", transferPath).with(RawMembers(user + [to, .init("amount", "\(order.amount)")]))
    }

    /// The same with another payee, wherever this one writes him. Nothing is signed anew.
    package func paying(_ payee: String) -> RawRequest {
        var copy = self
        if var form = bodyForm, form["to"] != nil {
            form["to"] = payee
            copy.bodyForm = form
        } else if let members, members["to"] != nil {
            copy = copy.with(members.setting("to", to: payee))
        }
        if copy.queryForm["to"] != nil { copy.queryForm["to"] = payee }
        return copy
    }

    func bearing(_ token: CapturedToken?) -> RawRequest {
        var copy = self
        if let token { copy.fields["Authorization"] = "Bearer \(token.token)" }
        return copy
    }
}

extension RawExchange {
    /// The token that a request bears in a field, or that an answer hands out.
    func bearerToken() -> CapturedToken? {
        if let field = request.fields["Authorization"], field.hasPrefix("Bearer ") {
            return CapturedToken(token: String(field.dropFirst("Bearer ".count)))
        }
        return response.flatMap { $0.loginsToken() }
    }
}

extension RawResponse {
    /// What a login's answer hands out; nil for one that says no.
    func loginsToken() -> CapturedToken? {
        guard let token = member("token"), let user = member("userId"), user != "0" else { return nil }
        return CapturedToken(token: token, userID: user)
    }
}
