import CountersignSchemes
import CountersignWire

/// The user ids that the parameters of an old client's request state, wherever a backend looks for parameters: in the query, in a
/// form, and under auth-v4 in the JSON that it signs. One whose name is read as `userId` by some backends and not by
/// others is refused: the gate would judge one value and the backend believe another. Source: docs/protocol.md, "Bearer
/// sessions".
struct StatedUsers {
    /// Decoded. Empty ones are not among them: clients send those before anybody has signed in.
    private(set) var ids: [[UInt8]] = []

    init(in request: Request, _ scheme: SchemeName) throws(Refusal) {
        let isForm = request.hasFormType && (!request.body.isEmpty || !request.isBodyWhole)
        // Of the other schemes' requests a multipart body is not read.
        let isMultipart = scheme == .formMD5 && request.hasMultipartType && !request.body.isEmpty
        if isForm, !request.isBodyWhole { throw Refusal(.tooLarge, "a form is too large to look for userId in") }
        if let query = request.query {
            // Beside a form of form-md5 nothing signs the query, and some backends prefer its parameters.
            try read(
                request.head.span.extracting(query.range),
                scheme == .formMD5 ? (isForm || isMultipart ? .besideSigned : .signed) : .general)
        }
        if isForm { try read(request.body.span, scheme == .formMD5 ? .signed : .general) }
        if isMultipart { try readMultipart(request) }
        if scheme == .authV4 { try readJSON(request.body.span) }
    }

    /// What a text's parameters may state.
    private enum Place {
        /// `userId`; `token` means nothing of ours here.
        case general
        /// form-md5's parameters: `userId`, and the `token` that the scheme has read.
        case signed
        /// Neither, and no name that somebody reads in another way.
        case besideSigned
    }

    // MARK: Forms

    /// Splits at `&`, and at `;` too, where some readers begin another parameter and all others go on with the value.
    private mutating func read(_ text: Span<UInt8>, _ place: Place) throws(Refusal) {
        var start = 0
        var mark = UInt8(ascii: "&")
        while start < text.count {
            var end = start
            while end < text.count, text[end] != UInt8(ascii: "&"), text[end] != UInt8(ascii: ";") { end += 1 }
            let piece = text.extracting(start..<end)
            let nameEnd = piece.firstIndex(of: UInt8(ascii: "="), from: 0) ?? piece.count
            if try states(piece.extracting(0..<nameEnd), at: place, after: mark) {
                let valueEnd = text.firstIndex(of: UInt8(ascii: "&"), from: end) ?? text.count
                note(Form.forgivinglyDecoded(text.extracting(min(start + nameEnd + 1, valueEnd)..<valueEnd)))
            }
            if end < text.count { mark = text[end] }
            start = end + 1
        }
    }

    /// Whether a parameter of that name is a `userId`, and everybody agrees that it is.
    private func states(_ raw: Span<UInt8>, at place: Place, after mark: UInt8) throws(Refusal) -> Bool {
        if place == .besideSigned { try refuseBarePercent(in: raw) }
        let (user, token) = StatedUsers.readings(of: raw, asTokenToo: place != .general)
        if user == .other, token == .other { return false }
        guard place != .besideSigned else {
            throw Refusal(.malformed, "the query, which nothing signs, has a name that may be read as userId or token")
        }
        guard user != .mistakable, token != .mistakable, mark == UInt8(ascii: "&") else {
            throw StatedUsers.mistakable
        }
        return user == .exact
    }

    /// How the name is read as `userId`, and as `token` where that is asked. A form may have as many names as
    /// bytes, so most are told by their length, and those without escapes are not copied.
    private static func readings(
        of raw: Span<UInt8>, asTokenToo: Bool
    ) -> (user: ParameterName.Reading, token: ParameterName.Reading) {
        // No spelling is shorter than what it stands for.
        guard raw.count >= 5 else { return (.other, .other) }
        func readings(_ name: Span<UInt8>) -> (user: ParameterName.Reading, token: ParameterName.Reading) {
            (
                ParameterName.reading(of: name, as: "userId"),
                asTokenToo ? ParameterName.reading(of: name, as: "token") : .other
            )
        }
        for index in 0..<raw.count where raw[index] == UInt8(ascii: "%") || raw[index] == UInt8(ascii: "+") {
            return readings(Form.forgivinglyDecoded(raw).span)
        }
        return readings(raw)
    }

    /// Some readers keep such a `%`, others leave it out, or the whole parameter.
    private func refuseBarePercent(in raw: Span<UInt8>) throws(Refusal) {
        for index in 0..<raw.count where raw[index] == UInt8(ascii: "%") {
            guard Percent.byte(in: raw, at: index + 1) != nil else {
                throw Refusal(.malformed, "the query, which nothing signs, has a bare % in a name")
            }
        }
    }

    // MARK: Multipart

    /// The fields, which the scheme has read as parameters; a file may have neither name.
    private mutating func readMultipart(_ request: Request) throws(Refusal) {
        let body = request.body.span
        guard let boundary = Multipart.Boundary(in: request), let parts = try? Multipart.read(body, between: boundary)
        else { throw Refusal(.malformed, "the multipart body cannot be read") }
        for part in parts {
            let (user, token) = StatedUsers.readings(of: body.extracting(part.name.range), asTokenToo: true)
            if user == .other, token == .other { continue }
            guard part.kind == .field, user != .mistakable, token != .mistakable else { throw StatedUsers.mistakable }
            if user == .exact { note(body.extracting(part.content.range).withUnsafeBufferPointer { Array($0) }) }
        }
    }

    // MARK: JSON

    /// The outermost members, which are what auth-v4 signs by name.
    private mutating func readJSON(_ text: Span<UInt8>) throws(Refusal) {
        guard !text.isEmpty else { return }
        var reading = ParameterName.Reading.other
        do throws(MalformedJSON) {
            var members = JSONMembers()
            while let member = try members.next(in: text) {
                let name = try bytes(member.name, text)
                reading = ParameterName.reading(of: name.span, as: "userId")
                if reading == .exact, member.kind != .null {
                    let value = try bytes(member.value, text)
                    note(value)
                }
                if reading == .mistakable { break }
            }
        } catch {
            throw Refusal(.malformed, "the body's members: \(error.description)")
        }
        if reading == .mistakable { throw StatedUsers.mistakable }
    }

    private func bytes(_ raw: Slice, _ text: Span<UInt8>) throws(MalformedJSON) -> [UInt8] {
        var bytes: [UInt8] = []
        try JSONMembers.forEachByte(of: raw, in: text) { bytes.append($0) }
        return bytes
    }

    private mutating func note(_ id: [UInt8]) { if !id.isEmpty { ids.append(id) } }

    private static let mistakable = Refusal(
        .malformed, "a parameter that some backends read as userId or token, and others do not")
}
