import CountersignSchemes
import CountersignWire

/// Changes that a man in the middle could make to a request.
enum Mutation {
    /// Flips one bit of a covered part. Nil where this request does not have that part, or where the bit
    /// makes no difference by the standard's own rule (a host has no case, a form has many spellings).
    static func flipBit(
        in part: Coverage.Part, of request: Request, _ scheme: any Scheme, _ random: inout SplitMix64
    ) -> Request? {
        var changed = request
        let bit = UInt8(1) << UInt8.random(in: 0..<8, using: &random)
        if part == .transport {
            changed.transport = request.transport == .tls ? .plain : .tls
        } else if part == .body || part == .jsonMembers
            || (part == .formParameters && request.matches(request.method, text: "POST"))
        {
            guard !request.body.isEmpty else { return nil }
            changed.body[Int.random(in: request.body.indices, using: &random)] ^= bit
        } else {
            guard
                let slice = slices(of: part, in: request, scheme).filter({ !$0.isEmpty }).randomElement(
                    using: &random)
            else {
                return nil
            }
            let index = Int.random(in: slice.range, using: &random)
            changed.head[index] ^= bit
            changed.identifyFields()
            if part == .authority, ASCII.isLetter(request.head[index]), bit == 0x20 { return nil }
        }
        changed.splitTarget()
        if part == .formParameters,
            parameters(of: changed, scheme.name) == parameters(of: request, scheme.name)
        {
            return nil
        }
        if part == .jsonMembers, let members = JSONMeaning.members(of: changed.body),
            members == JSONMeaning.members(of: request.body)
        {
            return nil
        }
        return changed
    }

    private static func slices(of part: Coverage.Part, in request: Request, _ scheme: any Scheme)
        -> [ByteRange]
    {
        func fields(_ choose: (String) -> Bool) -> [Request.Field] {
            request.fields.filter { choose(request.text($0.name)) }
        }
        switch part {
        case .method: return [request.method]
        case .authority: return [request.authority]
        case .path: return [request.path]
        case .query, .formParameters: return request.query.map { [$0] } ?? []
        case .signatureParameters:
            let own: Set = ["signature-input", "signature", "authorization", "x-amz-date"]
            return fields(own.contains).map(\.value)
        case .namedFields:
            let others: Set = ["host", "content-length", "signature-input", "signature", "authorization"]
            return fields { !others.contains($0) }.flatMap { [$0.name, $0.value] }
        case .body, .transport, .otherFields, .formSpelling, .querySpelling, .fieldSpelling, .fieldLines,
            .emptyQuery,
            .jsonMembers,
            .jsonSpelling:
            return []
        }
    }

    /// The decoded parameters in any order, without those that the scheme does not sign, and without case
    /// where it does not sign the case; nil if they cannot be parsed.
    private static func parameters(of request: Request, _ scheme: SchemeName) -> [[UInt8]]? {
        let query = request.query.map { Array(request.head[$0.range]) } ?? []
        let text = request.matches(request.method, text: "POST") ? request.body : query
        var reader = Form.Reader()
        var buffer = ByteBuffer(capacity: 256)
        var found: [[UInt8]] = []
        do {
            while let pair = try reader.next(in: text.span) {
                let name = try Form.decode(pair.name, of: text.span, into: &buffer)
                let value = try Form.decode(pair.value, of: text.span, into: &buffer)
                var plain = Array(buffer.span.extracting(name.range).text.utf8)
                if scheme == .authV2, plain.starts(with: "auth_".utf8) { continue }
                if scheme == .authV1 { plain = plain.map(ASCII.lowercased) }
                found.append(plain + [0] + Array(buffer.span.extracting(value.range).text.utf8))
            }
        } catch {
            return nil
        }
        return found.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Changes an uncovered part to another valid value.
    static func change(_ part: Coverage.Part, of request: Request) -> Request? {
        switch part {
        case .method: return rebuilt(request, method: "HEAD")
        case .authority: return rebuilt(request, authority: "other.example.com")
        case .transport:
            var changed = request
            changed.transport = .plain
            return changed
        case .path: return rebuilt(request, target: { $0.replacing("/call", with: "/elsewhere") })
        case .query: return rebuilt(request, target: { $0.replacing("x=1", with: "x=2") })
        case .querySpelling: return rebuilt(request, target: { $0.replacing("x=1&y", with: "y=&%78=1") })
        case .fieldSpelling: return rebuilt(request, spaced: "x-words")
        case .fieldLines: return rebuilt(request, split: "x-words")
        case .emptyQuery: return rebuilt(request, target: { $0 + "?" })
        case .otherFields: return rebuilt(request, agent: "other")
        case .formSpelling: return rebuilt(request, body: { $0.replacing("a=x", with: "%61=%78") })
        case .jsonSpelling: return rebuilt(request, body: { _ in #" { "A" : "\u0078" } "# })
        case .body: return rebuilt(request, body: { $0 + "another" })
        case .signatureParameters:
            return rebuilt(
                request, timestamp: "1800000100", target: { $0.replacing("=1800000000", with: "=1800000100") }
            )
        default: return nil
        }
    }

    private static func rebuilt(
        _ request: Request, method: String? = nil, authority: String? = nil, agent: String? = nil,
        spaced: String? = nil, split: String? = nil, timestamp: String? = nil,
        body: (String) -> String = { $0 }, target: (String) -> String = { $0 }
    ) -> Request {
        var draft = Draft(
            method: method ?? request.text(request.method),
            target: Array(target(request.text(request.target)).utf8),
            authority: authority ?? request.text(request.authority), transport: request.transport)
        for field in request.fields {
            let name = request.text(field.name)
            if name == "host" || name == "content-length" { continue }
            var value = request.text(field.value)
            if name == "user-agent" { value = agent ?? value }
            if name == "x-auth-timestamp" { value = timestamp ?? value }
            if name == spaced { value = value.replacing(" ", with: " \t ") }
            if name == split {
                draft.fields += value.split(separator: ", ").map {
                    Draft.Field(name: name, value: String($0))
                }
                continue
            }
            draft.fields.append(Draft.Field(name: name, value: value))
        }
        draft.body = Array(body(String(decoding: request.body, as: UTF8.self)).utf8)
        return draft.request()
    }
}
