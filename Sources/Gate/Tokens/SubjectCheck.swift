import CountersignWire

/// Checks that a request that bears a token alone names no user other than the token's, at the places of
/// policy `user-in` as the backend reads them. A name that only some backends read as the policy's name is
/// refused: the gate would judge one value and the backend would use another.
struct SubjectCheck {
    private let account: AccountIdentity

    init(_ session: Session) { account = session.account }

    /// Refuses as `session-ended` if a value is not the session's user. A name of a form or query
    /// parameter is searched in both: backends often read a parameter from either.
    func check(_ places: [ValueLocation], in request: Request) throws(Refusal) {
        var parameters: [[UInt8]] = []
        for place in places {
            switch place {
            case .form(let name), .query(let name):
                if !parameters.contains(name) { parameters.append(name) }
            case .cookie(let name): try checkCookies(named: name, in: request)
            case .header(let name): try checkFields(named: name, in: request)
            case .bearer, .userAgent: continue
            }
        }
        guard !parameters.isEmpty else { return }
        if let query = request.query { try check(request.head.span.extracting(query.range), for: parameters) }
        if request.hasFormType { try check(request.body.span, for: parameters) }
    }

    private func check(value: Span<UInt8>, named name: Span<UInt8>) throws(Refusal) {
        guard value.isEmpty || account.isStated(as: value) else {
            throw Refusal(.sessionEnded, detail: "\(name.text) is not the user that the token belongs to")
        }
    }

    private func checkCookies(named name: [UInt8], in request: Request) throws(Refusal) {
        let cookies = try Cookies(in: request)
        guard !cookies.areMistakable(for: name) else { throw SubjectCheck.mistakable }
        if let value = try cookies.value(of: name) { try check(value: value.span, named: name.span) }
    }

    /// Backends map every character of a field name that is not a letter or digit to one character.
    private func checkFields(named name: [UInt8], in request: Request) throws(Refusal) {
        for field in request.fields where field.name.count == name.count {
            let sent = request.head.span.extracting(field.name.range)
            if sent.matches(name.span) {
                try check(value: request.head.span.extracting(field.value.range), named: name.span)
            } else if SubjectCheck.isAlike(sent, to: name.span) {
                throw SubjectCheck.mistakable
            }
        }
    }

    private static func isAlike(_ sent: Span<UInt8>, to name: Span<UInt8>) -> Bool {
        for index in 0..<sent.count where sent[index] != name[index] {
            guard !ASCII.isLetter(sent[index]), !ASCII.isDigit(sent[index]), !ASCII.isLetter(name[index]),
                !ASCII.isDigit(name[index])
            else { return false }
        }
        return true
    }

    /// Splits at `&` and also at `;`, where some parsers start a new parameter and all others continue the
    /// value.
    private func check(_ text: Span<UInt8>, for names: [[UInt8]]) throws(Refusal) {
        var start = 0
        var mark = UInt8(ascii: "&")
        while start < text.count {
            var end = start
            while end < text.count, text[end] != UInt8(ascii: "&"), text[end] != UInt8(ascii: ";") {
                end += 1
            }
            let piece = text.extracting(start..<end)
            let nameEnd = piece.firstIndex(of: UInt8(ascii: "="), from: 0) ?? piece.count
            if let name = try named(piece.extracting(0..<nameEnd), among: names, after: mark) {
                let valueEnd = text.firstIndex(of: UInt8(ascii: "&"), from: end) ?? text.count
                let value = Form.lenientlyDecoded(
                    text.extracting(min(start + nameEnd + 1, valueEnd)..<valueEnd))
                try check(value: value.span, named: name.span)
            }
            if end < text.count { mark = text[end] }
            start = end + 1
        }
    }

    /// The one of `names` that a parameter has; nil for any other name.
    private func named(
        _ raw: Span<UInt8>, among names: [[UInt8]], after mark: UInt8
    ) throws(Refusal) -> [UInt8]? {
        for name in names {
            // No encoded name is shorter than the name.
            guard raw.count >= name.count else { continue }
            switch SubjectCheck.reading(of: raw, as: name) {
            case .other: continue
            case .exact where mark == UInt8(ascii: "&"): return name
            case .exact, .ambiguous: throw SubjectCheck.mistakable
            }
        }
        return nil
    }

    private static func reading(of raw: Span<UInt8>, as name: [UInt8]) -> LenientParameterName.NameMatch {
        for index in 0..<raw.count where raw[index] == UInt8(ascii: "%") || raw[index] == UInt8(ascii: "+") {
            return LenientParameterName.match(of: Form.lenientlyDecoded(raw).span, as: name.span)
        }
        return LenientParameterName.match(of: raw, as: name.span)
    }

    private static let mistakable = Refusal(
        .malformed, detail: "a name that some backends read as that of the user, and others do not")
}
