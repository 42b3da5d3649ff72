/// One way in which two parsers read a signed message differently.
package struct Ambiguity: Sendable {
    /// The request that is changed.
    package enum RequestSource: Sendable {
        /// The victim's request, intercepted.
        case victimsTransfer
        /// A request that the attacker's own app signs, with the text that the closure gives as the payee.
        /// The closure gets the victim's token if one was captured, and returns nil where it needs a token
        /// and has none.
        case ownTransfer(payee: @Sendable (TransferOrder, CapturedToken?) -> String?)
    }

    /// `ampersand-in-value`
    package let name: String
    /// What the attacker does, as a sentence without its subject.
    package let sentence: String
    package let source: RequestSource
    /// Variants of the request whose signature is still valid to a lenient verifier, and from which the
    /// application executes the order. Each is tried; empty if the request cannot be changed this way.
    package let apply: @Sendable (RawRequest, TransferOrder) -> [RawRequest]

    package init(
        _ name: String, sentence: String, source: RequestSource = .victimsTransfer,
        apply: @escaping @Sendable (RawRequest, TransferOrder) -> [RawRequest]
    ) {
        self.name = name
        self.sentence = sentence
        self.source = source
        self.apply = apply
    }
}

/// Signing parameters as `k=v&k=v` without escaping: a value that contains `&` and `=` has the same signature
/// as separate parameters.
struct UnescapedJoin {
    /// Whether the signature leaves out the parameter of that name.
    let isUnsigned: @Sendable (_ name: String) -> Bool

    /// A form with the same signature base as `form`, with the value of `to` split into parameters. Nil if
    /// that value contains no `&`.
    func reparsed(_ form: RawForm) -> RawForm? {
        let signed = sorted(form)
        guard let index = signed.firstIndex(where: { $0.name == "to" }), signed[index].text.contains("&")
        else {
            return nil
        }
        var pairs = "to=\(signed[index].text)".split(separator: "&").map { part in
            let equals = part.firstIndex(of: "=") ?? part.endIndex
            return RawForm.Pair(name: String(part[..<equals]), value: String(part[equals...].dropFirst()))
        }
        // Appends all parameters that sort after `to` to the last value, so that the signature base stays the
        // same.
        for pair in signed[(index + 1)...] {
            pairs[pairs.count - 1].value += UnescapedJoin.text([pair], leading: true)
        }
        return RawForm(signed[..<index] + pairs + form.pairs.filter { isUnsigned($0.name) })
    }

    /// Moves the payee into the preceding value, which leaves the signature base unchanged, and adds another
    /// payee in an unsigned place: in the query beside a form, or in a form beside a query.
    var payeeInValue: Ambiguity {
        Ambiguity(
            "payee-in-value",
            sentence: "hides the payee in the value before, and names another where nothing is signed"
        ) {
            request, order in
            guard let hidden = hidingPayee(in: request.parameters) else { return [] }
            let open = RawForm([.init(name: "to", value: order.payee)])
            var (inForm, inQuery) = (request.with(hidden), request)
            inForm.queryForm.pairs += open.pairs
            inQuery.queryForm = hidden
            inQuery.bodyForm = open
            return [inForm, inQuery]
        }
    }

    private func hidingPayee(in form: RawForm) -> RawForm? {
        var signed = sorted(form)
        guard let index = signed.firstIndex(where: { $0.name == "to" }), index > 0 else { return nil }
        signed[index - 1].value += UnescapedJoin.text([signed[index]], leading: true)
        signed.remove(at: index)
        return RawForm(signed + form.pairs.filter { isUnsigned($0.name) })
    }

    func sorted(_ form: RawForm) -> [RawForm.Pair] {
        form.pairs.filter { !isUnsigned($0.name) }.sorted {
            $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
        }
    }

    /// `k=v&k=v`, with `&` in front if `leading`.
    static func text(_ pairs: [RawForm.Pair], leading: Bool = false) -> [UInt8] {
        pairs.enumerated().flatMap { index, pair in
            Array((index > 0 || leading ? "&\(pair.name)=" : "\(pair.name)=").utf8) + pair.value
        }
    }
}
