import CountersignWire

/// The parameter names that form-md5, auth-v1 and auth-v2 sign by, as far as they occur in one query or form
/// body, however they are escaped. One bounded scan finds them all.
package struct SignatureParameterNames: Sendable {
    /// The number of parameters that are scanned. A signed form has at most ``FormParameters/most``, so a
    /// name after these belongs to no valid signature.
    package static let mostPairs = 1_024

    private struct NameSet: OptionSet {
        let rawValue: UInt8
        static let appID = NameSet(rawValue: 1 << 0)
        static let md5Telling = NameSet(rawValue: 1 << 1)
        static let authSignature = NameSet(rawValue: 1 << 2)
        static let authKey = NameSet(rawValue: 1 << 3)
        static let authTelling = NameSet(rawValue: 1 << 4)
        /// A name that begins with `X`.
        static let other = NameSet(rawValue: 1 << 5)
    }

    private var found: NameSet = []
    private var versions: UInt16 = 0
    private var isSecondVersion = false
    /// Whether an unscanned part may contain a name of form-md5: after a pair that cannot be parsed, or
    /// after the last of ``mostPairs``.
    private var isCut = false

    package init() {}

    fileprivate init(inQueryOf request: borrowing Request) {
        let query = request.query ?? .empty
        self.init(in: request.head.span.extracting(query.range))
    }

    /// As far as the text can be read.
    package init(in text: Span<UInt8>) {
        var start = 0
        var pairs = 0
        while start < text.count {
            guard pairs < SignatureParameterNames.mostPairs else {
                isCut = true
                return
            }
            pairs += 1
            switch text[start] {
            case UInt8(ascii: "a"), UInt8(ascii: "r"), UInt8(ascii: "s"), UInt8(ascii: "t"),
                UInt8(ascii: "%"):
                note(pairAt: start, of: text)
            case UInt8(ascii: "X"): found.insert(.other)
            // The form parser refuses an empty pair and a pair without a name.
            case UInt8(ascii: "&"), UInt8(ascii: "="): isCut = true
            default: break
            }
            guard let end = text.firstIndex(of: UInt8(ascii: "&"), from: start) else { return }
            start = end + 1
        }
        if start > 0 { isCut = true }
    }

    /// form-md5's names among the fields and files of a multipart body. A body that cannot be parsed counts
    /// as signed if it may contain such names, so that its sender learns what is wrong with it.
    init(multipart body: Span<UInt8>, between boundary: Multipart.Boundary?) {
        if let boundary, let parts = try? Multipart.read(body, between: boundary) {
            for part in parts { noteMD5(named: body.extracting(part.name.range)) }
            return
        }
        for name in ["app_id", "sign", "rand", "timestamp"] {
            let pattern = Array("name=\"\(name)\"".utf8)
            if body.firstIndex(of: pattern.span) != nil { noteMD5(named: Array(name.utf8).span) }
        }
    }

    /// The families of names that occur, or may occur where the text was not read to its end.
    fileprivate var evidence: SchemeEvidence.Parameters {
        if found.isEmpty, !isCut { return [] }
        var evidence: SchemeEvidence.Parameters = []
        if isCut || found.contains(.other) { evidence.insert(.amazon) }
        if !found.isDisjoint(with: [.appID, .md5Telling]) { evidence.insert(.formMD5) }
        if !found.isDisjoint(with: [.authSignature, .authKey, .authTelling]) { evidence.insert(.auth) }
        return evidence
    }

    /// Whether the text has the parameters of a form-md5 signature, valid or not.
    var hasFormMD5Signature: Bool { found.isSuperset(of: [.appID, .md5Telling]) }
    /// Whether there are none of form-md5's names; a text that was not read to its end may have some.
    var hasNoFormMD5Names: Bool { !isCut && found.isDisjoint(with: [.appID, .md5Telling]) }
    /// Whether the text has the parameters of an auth-v1 or auth-v2 signature, valid or not.
    var hasAuthSignature: Bool {
        found.contains(.authSignature) || found.isSuperset(of: [.authKey, .authTelling])
    }
    /// auth-v2 says so, once; whatever says anything else, or nothing, is auth-v1's to judge.
    var authScheme: SchemeName { versions == 1 && isSecondVersion ? .authV2 : .authV1 }

    // MARK: Names

    /// The longest of them is `auth_signature`; no byte is spelled longer than `%61`.
    private static let longestName = 14

    private mutating func note(pairAt start: Int, of text: Span<UInt8>) {
        let limit = min(text.count, start + 3 * SignatureParameterNames.longestName + 1)
        var end = start
        while end < limit, text[end] != UInt8(ascii: "="), text[end] != UInt8(ascii: "&") { end += 1 }
        let isEnded = end == text.count || end < limit
        guard isEnded, end - start >= 4 else { return }
        var decoded = Bytes16()
        guard let count = SignatureParameterNames.decode(text.extracting(start..<end), into: &decoded) else {
            return
        }
        let name = decoded.span.extracting(0..<count)
        switch count {
        case 4, 6, 9: noteMD5(named: name)
        case 8: if name.matches("auth_key") { found.insert(.authKey) }
        case 12: if name.matches("auth_version") { noteVersion(valueFrom: end + 1, of: text) }
        case 14:
            if name.matches("auth_signature") { found.insert(.authSignature) }
            if name.matches("auth_client_id") { found.insert(.authKey) }
            if name.matches("auth_timestamp") { found.insert(.authTelling) }
        default: break
        }
    }

    private mutating func noteMD5(named name: Span<UInt8>) {
        if name.matches("app_id") { noteMD5(.appID) }
        if name.matches("sign") || name.matches("rand") || name.matches("timestamp") { noteMD5(.md5Telling) }
    }

    private mutating func noteMD5(_ name: NameSet) { if !isCut { found.insert(name) } }

    private mutating func noteVersion(valueFrom start: Int, of text: Span<UInt8>) {
        found.insert(.authTelling)
        if versions < .max { versions += 1 }
        var end = start
        while end < min(text.count, start + 4), text[end] != UInt8(ascii: "&") { end += 1 }
        guard start < end else {
            isSecondVersion = false
            return
        }
        let value = text.extracting(start..<end)
        isSecondVersion = value.matches("2") || value.matches("%32")
    }

    /// What a name stands for, and its length; nil where it is no name of a form, or longer than any of
    /// these.
    private static func decode(_ raw: Span<UInt8>, into name: inout Bytes16) -> Int? {
        var count = 0
        var index = 0
        while index < raw.count {
            guard count < longestName else { return nil }
            var byte = raw[index]
            if byte == UInt8(ascii: "%") {
                guard let escaped = PercentEncoding.byte(in: raw, at: index + 1) else { return nil }
                byte = escaped
                index += 2
            }
            name[count] = byte
            count += 1
            index += 1
        }
        return count
    }
}

/// The signature names of a request: those of its query, and those of its form or multipart body where that
/// is held.
package struct RequestParameterNames: Sendable {
    package let query: SignatureParameterNames
    package let body: SignatureParameterNames
    /// Whether there is a form body that was not read, so that nothing is known of its names.
    package let isFormUnread: Bool
    /// The same of a multipart body, in which form-md5 alone signs.
    package let isMultipartUnread: Bool

    package var isBodyUnread: Bool { isFormUnread || isMultipartUnread }

    /// The families of names that occur, or may occur in a body that was not read.
    var evidence: SchemeEvidence.Parameters {
        var evidence = query.evidence.union(body.evidence.subtracting(.amazon))
        if isFormUnread { evidence.formUnion([.formMD5, .auth]) }
        if isMultipartUnread { evidence.insert(.formMD5) }
        return evidence
    }

    /// Whether form bodies are scanned. Where no app allows a scheme that signs in them, there is nothing to
    /// look for.
    package enum FormBodies: Sendable { case scanned, ignored }

    package static func find(in request: Request, formBodies: FormBodies = .scanned) -> RequestParameterNames
    {
        if !request.hasFormType, !request.hasMultipartType {
            return RequestParameterNames(
                query: SignatureParameterNames(inQueryOf: request), body: SignatureParameterNames(),
                isFormUnread: false, isMultipartUnread: false)
        }
        let hasForm = formBodies == .scanned && request.hasFormType
        let hasMultipart = formBodies == .scanned && !hasForm && request.hasMultipartType
        var body = SignatureParameterNames()
        if hasForm { body = SignatureParameterNames(in: request.body.span) }
        if hasMultipart, request.isBodyWhole {
            body = SignatureParameterNames(
                multipart: request.body.span, between: Multipart.Boundary(in: request))
        }
        return RequestParameterNames(
            query: SignatureParameterNames(inQueryOf: request),
            body: body, isFormUnread: hasForm && !request.isBodyWhole,
            isMultipartUnread: hasMultipart && !request.isBodyWhole)
    }
}
