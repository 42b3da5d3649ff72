import CountersignWire

/// How the app writes a transfer. Source: ``BankRoutes``.
extension RawRequest {
    package static let transferPath = "/transfer"
    package static let balancePath = "/balance"

    package var isTransfer: Bool { path == RawRequest.transferPath && method == "POST" }

    /// A transfer as a form. `payer` is given where no session names the payer.
    static func transfer(form order: TransferOrder, namingThePayer payer: String?) -> RawRequest {
        var request = RawRequest(method: "POST", target: transferPath)
        let user = payer.map { [RawForm.Pair(name: "user", value: $0)] } ?? []
        request.bodyForm = RawForm(
            user + [.init(name: "to", value: order.payee), .init(name: "amount", value: "\(order.amount)")])
        return request
    }

    /// A transfer as JSON.
    static func transfer(json order: TransferOrder, namingThePayer payer: String?) -> RawRequest {
        let user = payer.map { [RawMembers.Member(name: "user", value: JSONValue.string($0).text)] } ?? []
        let to = RawMembers.Member(name: "to", value: JSONValue.string(order.payee).text)
        return RawRequest(method: "POST", target: transferPath).with(
            RawMembers(user + [to, .init(name: "amount", value: "\(order.amount)")]))
    }

    /// The same request with another payee, in each place where it names one. The signature stays as it is.
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
    /// The token in a request's `Authorization`, or in a login's response.
    func bearerToken() -> CapturedToken? {
        if let field = request.fields["Authorization"], field.hasPrefix("Bearer ") {
            return CapturedToken(token: String(field.dropFirst("Bearer ".count)))
        }
        return response.flatMap { $0.loginToken() }
    }
}

extension RawResponse {
    /// The token in a login's response; nil if the login was refused.
    func loginToken() -> CapturedToken? {
        guard let token = member("token"), let user = member("userId"), user != "0" else { return nil }
        return CapturedToken(token: token, userID: user)
    }
}
