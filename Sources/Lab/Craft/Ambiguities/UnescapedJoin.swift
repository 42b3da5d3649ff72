/// Where parameters are signed as `k=v&k=v` with values as they are, a value that holds `&` and `=` signs like parameters of its own.
struct UnescapedJoin {
    /// Parameters that nothing signs.
    let isUnsigned: @Sendable (_ name: String) -> Bool

    /// What is read out of a form whose `to` holds more than a payee: the same text to sign, cut at other places. Nil where it holds no `&`.
    func recut(_ form: RawForm) -> RawForm? {
        let signed = sorted(form)
        guard let index = signed.firstIndex(where: { $0.name == "to" }), signed[index].text.contains("&") else {
            return nil
        }
        var pairs = "to=\(signed[index].text)".split(separator: "&").map { part in
            let equals = part.firstIndex(of: "=") ?? part.endIndex
            return RawForm.Pair(String(part[..<equals]), String(part[equals...].dropFirst()))
        }
        // All that was sorted behind goes into the last value, so that the text stays what it was.
        for pair in signed[(index + 1)...] { pairs[pairs.count - 1].value += UnescapedJoin.text([pair], leading: true) }
        return RawForm(signed[..<index] + pairs + form.pairs.filter { isUnsigned($0.name) })
    }

    /// The payee goes into the value before him, where the text to sign has him anyway, and another one takes his place where nothing is
    /// signed: in the query of a form, or in a form beside a query.
    var swallowing: Ambiguity {
        Ambiguity("payee-in-value", "hides the payee in the value before, and names another where nothing is signed") {
            request, order in
            guard let hidden = hidden(request.parameters) else { return [] }
            let open = RawForm([.init("to", order.payee)])
            var (inForm, inQuery) = (request.with(hidden), request)
            inForm.queryForm.pairs += open.pairs
            inQuery.queryForm = hidden
            inQuery.bodyForm = open
            return [inForm, inQuery]
        }
    }

    private func hidden(_ form: RawForm) -> RawForm? {
        var signed = sorted(form)
        guard let index = signed.firstIndex(where: { $0.name == "to" }), index > 0 else { return nil }
        signed[index - 1].value += UnescapedJoin.text([signed[index]], leading: true)
        signed.remove(at: index)
        return RawForm(signed + form.pairs.filter { isUnsigned($0.name) })
    }

    func sorted(_ form: RawForm) -> [RawForm.Pair] {
        form.pairs.filter { !isUnsigned($0.name) }.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }

    /// `k=v&k=v`, with `&` in front where it goes on from something.
    static func text(_ pairs: [RawForm.Pair], leading: Bool = false) -> [UInt8] {
        pairs.enumerated().flatMap { index, pair in
            Array((index > 0 || leading ? "&\(pair.name)=" : "\(pair.name)=").utf8) + pair.value
        }
    }
}
