import CountersignWire

/// What the bank answers once somebody else has said whose request it is.
package enum BankRoutes {
    /// `POST /transfer` with `to`, `amount` and where wished `note`: `{"moved":N}`. `GET /balance`: `{"balance":N,"card":"…"}`. Otherwise
    /// 4xx with `{"reason":"…"}`. Paths and methods as loosely as the field: whatever the path ends in, `/transfer` by any method.
    package static func answer(
        _ request: RawRequest, _ parameters: FieldParameters, for holder: String, at bank: Bank
    ) throws(StageFault) -> RawResponse {
        if request.path.hasSuffix("/transfer") {
            let result = try bank.transfer(
                parameters.number("amount"), from: holder, to: parameters["to"] ?? "",
                note: parameters["note"] ?? "")
            switch result {
            case .moved(let amount): return RawResponse(json: ["moved": .integer(Int64(amount))])
            case .refused(let reason): return RawResponse(400, json: ["reason": .string(reason)])
            }
        }
        guard request.path.hasSuffix("/balance") else { return RawResponse(404, json: ["reason": "no such page"]) }
        return RawResponse(json: [
            "balance": .integer(Int64(try bank.balance(of: holder))), "card": .string(try bank.secret(of: holder)),
        ])
    }
}

extension RawResponse {
    /// A JSON answer.
    package init(_ status: Int = 200, json: JSONValue) {
        self.init(status, fields: [("Content-Type", "application/json")], body: Array(json.text.utf8))
    }
}
