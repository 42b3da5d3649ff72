import CountersignSchemes
import CountersignWire

/// Where a request carries its signature or its key id, found without reading the rest, which may be what is wrong.
struct SentPlace: Sendable {
    private enum Kind: Sendable {
        /// A form or query parameter.
        case parameter(String)
        /// A field, whole.
        case field(String)
        /// What stands in a field after a mark, up to one of the ends.
        case within(String, after: String, ends: String)
    }

    private let kind: Kind

    /// What stands before it in a string to sign that has it.
    var mark: [UInt8] {
        switch kind {
        case .parameter(let name): [UInt8]("\(name)=")
        case .field: []
        case .within(_, let mark, _): [UInt8](mark)
        }
    }

    static func signature(of scheme: SchemeName, in draft: Draft) -> SentPlace? {
        switch scheme {
        case .messageSignatures: first(in: draft, .within("signature", after: "=", ends: ",;"))
        case .formMD5: first(in: draft, .parameter("sign"))
        case .authV1, .authV2: first(in: draft, .parameter("auth_signature"))
        case .authV4: first(in: draft, .field("x-auth-signature"))
        case .sigV4:
            first(
                in: draft, .within("authorization", after: "Signature=", ends: ","), .parameter("X-Amz-Signature"))
        case .token: nil
        }
    }

    static func keyID(of scheme: SchemeName, in draft: Draft) -> SentPlace? {
        switch scheme {
        case .messageSignatures: first(in: draft, .within("signature-input", after: ";keyid=\"", ends: "\""))
        case .formMD5: first(in: draft, .parameter("app_id"))
        case .authV1: first(in: draft, .parameter("auth_key"))
        case .authV2: first(in: draft, .parameter("auth_client_id"), .parameter("auth_key"))
        case .authV4: first(in: draft, .field("x-auth-client-id"))
        case .sigV4:
            first(
                in: draft, .within("authorization", after: "Credential=", ends: "/,"), .parameter("X-Amz-Credential"))
        case .token: nil
        }
    }

    /// What looks like key ids of those schemes, without the white space around them.
    static func keyIDs(in request: Request, _ schemes: Registry) -> [(SchemeName, KeyID)] {
        let draft = Draft(request)
        return schemes.schemes.compactMap { scheme in
            guard let id = keyID(of: scheme.name, in: draft)?.read(draft).flatMap({ KeyID($0.trimmed.span) }) else {
                return nil
            }
            return (scheme.name, id)
        }
    }

    private static func first(in draft: Draft, _ kinds: Kind...) -> SentPlace? {
        kinds.lazy.map { SentPlace(kind: $0) }.first { $0.read(draft) != nil }
    }

    /// As it stands there; parameters decoded.
    func read(_ draft: Draft) -> [UInt8]? {
        switch kind {
        case .parameter(let name):
            if let parts = SentPlace.multipart(draft, having: name) {
                let part = parts.first { SentPlace.isNamed(name, part: $0, of: draft) }
                return part.map { Array(draft.body[$0.content.range]) }
            }
            let text = SentPlace.isInBody(draft) ? draft.body : draft.query ?? []
            return SentPlace.value(of: [UInt8](name), in: text.span).map { Escapes.decode($0, plus: .space) }
        case .field(let name): return draft.value(of: name)
        case .within(let name, _, _):
            guard let value = draft.value(of: name), let range = range(in: value) else { return nil }
            return Array(value[range])
        }
    }

    /// Parameters are written encoded.
    func write(_ text: [UInt8], in draft: Draft) -> Draft {
        var changed = draft
        switch kind {
        case .parameter(let name):
            let parts = SentPlace.multipart(draft, having: name) ?? []
            if let part = parts.first(where: { SentPlace.isNamed(name, part: $0, of: draft) }) {
                changed.body.replaceSubrange(part.content.range, with: text)
                return changed
            }
            var pairs = parameters(of: draft)
            for index in pairs.all.indices where pairs.all[index].name == [UInt8](name) {
                pairs.all[index].value = Escapes.strict(text)
            }
            if SentPlace.isInBody(draft) {
                changed.body = pairs.text
            } else {
                changed.target = draft.path + [.question] + pairs.text
            }
        case .field(let name), .within(let name, _, _):
            guard let index = draft.fields.firstIndex(where: { $0.name.lowercased() == name }) else { return draft }
            let value = draft.fields[index].value
            changed.fields[index].value = text
            if let range = range(in: value) {
                changed.fields[index].value =
                    Array(value[..<range.lowerBound]) + text + Array(value[range.upperBound...])
            }
        }
        return changed
    }

    /// Of the first parameter of that name, as it is written; nil where it has none. Asked of every request that is
    /// refused, so it is looked for where a scheme looks for its names, and no further.
    private static func value(of name: [UInt8], in text: Span<UInt8>) -> [UInt8]? {
        var start = 0
        for _ in 0..<SignatureNames.mostPairs where start < text.count {
            let end = text.firstIndex(of: .ampersand, from: start) ?? text.count
            let mark = start + name.count
            if mark <= end, text.extracting(start..<mark).matches(name.span), mark == end || text[mark] == .equals {
                guard mark < end else { return nil }
                return text.extracting(mark + 1..<end).withUnsafeBufferPointer { Array($0) }
            }
            start = end + 1
        }
        return nil
    }

    private func parameters(of draft: Draft) -> Pairs {
        Pairs(SentPlace.isInBody(draft) ? draft.body : draft.query ?? [])
    }

    /// The parts of a multipart body, for form-md5's parameters: no other scheme has them there. Nil where
    /// there is no such body, where it cannot be read, and where it is too large to be looked at.
    private static func multipart(_ draft: Draft, having name: String) -> [Multipart.Part]? {
        guard name == "sign" || name == "app_id", draft.mediaType == "multipart/form-data",
            draft.body.count <= Budget.body, let type = draft.value(of: "content-type"),
            let boundary = Multipart.Boundary(contentType: type.span)
        else { return nil }
        return try? Multipart.read(draft.body.span, between: boundary)
    }

    private static func isNamed(_ name: String, part: Multipart.Part, of draft: Draft) -> Bool {
        part.kind == .field && draft.body[part.name.range].elementsEqual(name.utf8)
    }

    /// A compressed body has no parameters before it is inflated.
    private static func isInBody(_ draft: Draft) -> Bool {
        draft.isForm && !draft.body.isEmpty && draft.value(of: "content-encoding") == nil
    }

    private func range(in value: [UInt8]) -> Range<Int>? {
        // Not with the standard library's search, at some 50 ns a byte: a stranger's field may have 60,000.
        guard case .within(_, let mark, let ends) = kind, let at = value.span.firstIndex(of: [UInt8](mark).span) else {
            return nil
        }
        let start = at + mark.utf8.count
        let end = value[start...].firstIndex { ends.utf8.contains($0) } ?? value.endIndex
        return start..<end
    }
}
