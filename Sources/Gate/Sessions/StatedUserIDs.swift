import CountersignSchemes
import CountersignWire

/// The user ids that a legacy client's request states where a backend may look for parameters: in the query,
/// in a form, and in JSON whose members the scheme signs. A parameter whose name only some backends read as
/// `userId` is refused: the gate would judge one value and the backend would use another. Source:
/// docs/protocol.md, "Bearer sessions".
struct StatedUserIDs {
    /// Decoded, without empty values: clients send those before the user signs in.
    private(set) var ids: [[UInt8]] = []

    init(in request: Request, scheme: SchemeName) throws(Refusal) {
        let isForm = request.hasFormType && (!request.body.isEmpty || !request.isBodyWhole)
        let signed = scheme.traits.signedParameters
        let isMultipart = signed == .form && request.hasMultipartType && !request.body.isEmpty
        if isForm, !request.isBodyWhole {
            throw Refusal(.tooLarge, detail: "a form is too large to look for userId in")
        }
        if let query = request.query {
            // Beside a signed form body the query is not signed, and some backends prefer the query's
            // parameters.
            try read(
                request.head.span.extracting(query.range),
                at: signed == .form ? (isForm || isMultipart ? .besideSigned : .signed) : .general)
        }
        if isForm { try read(request.body.span, at: signed == .form ? .signed : .general) }
        if isMultipart { try readMultipart(request) }
        if signed == .jsonMembers { try readJSON(request.body.span) }
    }

    /// Which parameters a text may have.
    private enum Place {
        /// `userId`; `token` has no meaning to the gate here.
        case general
        /// form-md5's signed parameters: `userId`, and the `token` that the scheme has read.
        case signed
        /// Unsigned parameters beside form-md5's signed ones: neither of these names, nor a name that some
        /// backend reads as one of them.
        case besideSigned
    }

    // MARK: Forms

    /// Splits at `&` and also at `;`, where some parsers start a new parameter and all others continue the
    /// value.
    private mutating func read(_ text: Span<UInt8>, at place: Place) throws(Refusal) {
        var start = 0
        var mark = UInt8(ascii: "&")
        while start < text.count {
            var end = start
            while end < text.count, text[end] != UInt8(ascii: "&"), text[end] != UInt8(ascii: ";") {
                end += 1
            }
            let piece = text.extracting(start..<end)
            let nameEnd = piece.firstIndex(of: UInt8(ascii: "="), from: 0) ?? piece.count
            if try states(piece.extracting(0..<nameEnd), at: place, after: mark) {
                let valueEnd = text.firstIndex(of: UInt8(ascii: "&"), from: end) ?? text.count
                note(Form.lenientlyDecoded(text.extracting(min(start + nameEnd + 1, valueEnd)..<valueEnd)))
            }
            if end < text.count { mark = text[end] }
            start = end + 1
        }
    }

    /// Whether all backends read a parameter of that name as `userId`. Refuses a name that only some backends
    /// read as `userId` or `token`.
    private func states(_ raw: Span<UInt8>, at place: Place, after mark: UInt8) throws(Refusal) -> Bool {
        if place == .besideSigned { try refuseBarePercent(in: raw) }
        let (user, token) = StatedUserIDs.readings(of: raw, asTokenToo: place != .general)
        if user == .other, token == .other { return false }
        guard place != .besideSigned else {
            throw Refusal(
                .malformed,
                detail: "the query, which nothing signs, has a name that may be read as userId or token")
        }
        guard user != .ambiguous, token != .ambiguous, mark == UInt8(ascii: "&") else {
            throw StatedUserIDs.mistakable
        }
        return user == .exact
    }

    /// How backends read the name as `userId`, and as `token` if `asTokenToo`. A form may have nearly as many
    /// names as bytes, so short names are rejected by their length, and names without escapes are not copied.
    private static func readings(
        of raw: Span<UInt8>, asTokenToo: Bool
    ) -> (user: LenientParameterName.NameMatch, token: LenientParameterName.NameMatch) {
        // No encoded name is shorter than the name.
        guard raw.count >= 5 else { return (.other, .other) }
        func readings(_ name: Span<UInt8>) -> (
            user: LenientParameterName.NameMatch, token: LenientParameterName.NameMatch
        ) {
            (
                LenientParameterName.match(of: name, as: "userId"),
                asTokenToo ? LenientParameterName.match(of: name, as: "token") : .other
            )
        }
        for index in 0..<raw.count where raw[index] == UInt8(ascii: "%") || raw[index] == UInt8(ascii: "+") {
            return readings(Form.lenientlyDecoded(raw).span)
        }
        return readings(raw)
    }

    /// Some parsers keep such a `%`, others drop it or the whole parameter.
    private func refuseBarePercent(in raw: Span<UInt8>) throws(Refusal) {
        for index in 0..<raw.count where raw[index] == UInt8(ascii: "%") {
            guard PercentEncoding.byte(in: raw, at: index + 1) != nil else {
                throw Refusal(.malformed, detail: "the query, which nothing signs, has a bare % in a name")
            }
        }
    }

    // MARK: Multipart

    /// Reads the fields, which the scheme has read as parameters; a file must have neither name.
    private mutating func readMultipart(_ request: Request) throws(Refusal) {
        let body = request.body.span
        guard let boundary = Multipart.Boundary(in: request),
            let parts = try? Multipart.read(body, between: boundary)
        else { throw Refusal(.malformed, detail: "the multipart body cannot be read") }
        for part in parts {
            let (user, token) = StatedUserIDs.readings(of: body.extracting(part.name.range), asTokenToo: true)
            if user == .other, token == .other { continue }
            guard part.kind == .field, user != .ambiguous, token != .ambiguous else {
                throw StatedUserIDs.mistakable
            }
            if user == .exact {
                note(body.extracting(part.content.range).withUnsafeBufferPointer { Array($0) })
            }
        }
    }

    // MARK: JSON

    /// Reads the outermost members, which auth-v4 signs by name.
    private mutating func readJSON(_ text: Span<UInt8>) throws(Refusal) {
        guard !text.isEmpty else { return }
        var reading = LenientParameterName.NameMatch.other
        do {
            var members = JSONMembers()
            while let member = try members.next(in: text) {
                let name = try bytes(member.name, in: text)
                reading = LenientParameterName.match(of: name.span, as: "userId")
                if reading == .exact, member.kind != .null {
                    let value = try bytes(member.value, in: text)
                    note(value)
                }
                if reading == .ambiguous { break }
            }
        } catch {
            throw Refusal(.malformed, detail: "the body's members: \(error.description)")
        }
        if reading == .ambiguous { throw StatedUserIDs.mistakable }
    }

    private func bytes(_ raw: ByteRange, in text: Span<UInt8>) throws(ParseError) -> [UInt8] {
        var bytes: [UInt8] = []
        try JSONMembers.forEachByte(of: raw, in: text) { bytes.append($0) }
        return bytes
    }

    private mutating func note(_ id: [UInt8]) { if !id.isEmpty { ids.append(id) } }

    private static let mistakable = Refusal(
        .malformed, detail: "a parameter that some backends read as userId or token, and others do not")
}

/// How backends read a parameter's name, some of them more leniently than the name is signed. PHP drops
/// leading spaces, stops at a NUL, and reads `name[x]` as an array; Rack and qs read `[name]` as `name`; qs,
/// Spring and others read `name.x` as a member of it; ASP.NET and Go's JSON ignore case; many trim white
/// space.
enum LenientParameterName {
    enum NameMatch {
        /// All backends read it as the word.
        case exact
        /// Some backends may read it as the word.
        case ambiguous
        case other
    }

    /// `name` is decoded.
    static func match(of name: Span<UInt8>, as word: StaticString) -> NameMatch {
        word.withUTF8Buffer { match(of: name, as: $0.span) }
    }

    /// `name` is decoded.
    static func match(of name: Span<UInt8>, as word: Span<UInt8>) -> NameMatch {
        if name.matches(word) { return .exact }
        let length = word.count
        var start = 0
        while start < name.count, isIgnored(name[start]) { start += 1 }
        guard name.count - start >= length else { return .other }
        for index in 0..<length where !isAlike(name[start + index], to: word[index]) { return .other }
        let end = start + length
        return end == name.count || isIgnored(name[end]) || name[end] == UInt8(ascii: ".")
            ? .ambiguous : .other
    }

    /// PHP replaces characters that its variable names cannot contain with `_`.
    private static func isAlike(_ byte: UInt8, to expected: UInt8) -> Bool {
        if ASCII.lowercased(byte) == ASCII.lowercased(expected) { return true }
        return expected == UInt8(ascii: "_")
            && (byte == UInt8(ascii: ".") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "["))
    }

    /// White space, control characters and brackets: some backends drop them before the word and end the name
    /// at them after it.
    private static func isIgnored(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]")
    }
}
