import CountersignWire
import Glibc

/// The parameters that auth-v1 and auth-v2 share: those in `auth_` beside the app's own, in the query or in a
/// form. Source: docs/protocol.md, "`auth-v1`" and "`auth-v2`".
struct ReferenceAuthParameters {
    let pairs: [LenientParameters.Pair]

    init(_ request: RawRequest) {
        let query = LenientParameters.query(of: request)
        pairs = query["auth_signature"] != nil ? query.pairs : LenientParameters.body(of: request).pairs
    }

    subscript(name: String) -> String? { LenientParameters(pairs)[name] }

    /// Whether `auth_timestamp`, parsed like PHP's `intval`, is less than `seconds` from now.
    func isWithin(_ seconds: Int) -> Bool {
        abs(LenientParameters.leadingNumber(self["auth_timestamp"] ?? "") - Int(time(nil))) < seconds
    }

    /// `k=v`, sorted by the bytes of the names before `[]` is added, joined by `&`, nothing escaped.
    static func joined(_ pairs: some Sequence<LenientParameters.Pair>) -> String {
        func name(_ pair: LenientParameters.Pair) -> String {
            pair.name.hasSuffix("[]") ? String(pair.name.dropLast(2)) : pair.name
        }
        let sorted = pairs.sorted { name($0).utf8.lexicographicallyPrecedes(name($1).utf8) }
        return sorted.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    /// The account is the parameter `user` as the app states it: the server has no other source. Parameters
    /// of the query are read before those of the body, signed or not.
    static func caller(_ request: RawRequest) -> ReferenceCaller {
        let parameters = LenientParameters(request)
        guard let user = parameters["user"] else {
            return .refused(RawResponse(400, json: ["reason": "no user"]))
        }
        return .known(name: user, parameters)
    }
}

/// auth-v1 as deployed servers check it. Source: docs/protocol.md, "`auth-v1`".
///
/// Its flaws: a body beside a signed query is not checked, nor is its `body_md5`, but the application reads
/// that body; names are signed in lower case, and of two names that become equal the last counts, while the
/// application distinguishes them; `&` in a value is not escaped; text after the digits of the timestamp is
/// ignored; requests are not remembered, so they can be replayed.
struct ReferenceAuthV1: ReferenceScheme {
    let app: AppKey

    func caller(_ request: RawRequest) -> ReferenceCaller {
        let auth = ReferenceAuthParameters(request)
        guard auth["auth_key"] == app.id else {
            return .refused(ReferenceRefusal.unauthorized("unknown key"))
        }
        guard auth.isWithin(600) else {
            return .refused(ReferenceRefusal.unauthorized("the timestamp is too old"))
        }
        var folded: [String: String] = [:]
        var arrays: [LenientParameters.Pair] = []
        for pair in auth.pairs where pair.name != "auth_signature" {
            let name = pair.name.lowercased()
            if name.hasSuffix("[]") { arrays.append((name, pair.value)) } else { folded[name] = pair.value }
        }
        let params = ReferenceAuthParameters.joined(folded.map { (name: $0.key, value: $0.value) } + arrays)
        let mac = ReferenceHash.hmacSHA256("\(request.method)\n\(request.path)\n\(params)", key: app.secret)
        guard ReferenceHash.isEqual(mac, to: auth["auth_signature"] ?? "") else {
            return .refused(ReferenceRefusal.unauthorized("the signature is wrong"))
        }
        return ReferenceAuthParameters.caller(request)
    }
}

/// auth-v2 as deployed servers check it. Source: docs/protocol.md, "`auth-v2`".
///
/// Its flaws: no parameter whose name begins with `auth_` is signed, the timestamp included, so that a valid
/// request stays valid for ever; the joined text is decoded a second time; and the flaws of auth-v1 except
/// the case of names.
struct ReferenceAuthV2: ReferenceScheme {
    let app: AppKey

    func caller(_ request: RawRequest) -> ReferenceCaller {
        let auth = ReferenceAuthParameters(request)
        guard auth["auth_client_id"] ?? auth["auth_key"] == app.id else {
            return .refused(ReferenceRefusal.unauthorized("unknown client"))
        }
        guard auth.isWithin(12 * 3600) else {
            return .refused(ReferenceRefusal.unauthorized("the timestamp is too old"))
        }
        let params = ReferenceAuthParameters.joined(auth.pairs.filter { !$0.name.hasPrefix("auth_") })
        let text = "\(request.method)\n\(decoded(request.path))\n\(decoded(params))"
        guard
            ReferenceHash.isEqual(
                ReferenceHash.hmacSHA256(text, key: app.secret), to: auth["auth_signature"] ?? "")
        else {
            return .refused(ReferenceRefusal.unauthorized("the signature is wrong"))
        }
        return ReferenceAuthParameters.caller(request)
    }

    private func decoded(_ text: String) -> String {
        let bytes = Array(text.utf8)
        return String(decoding: Form.lenientlyDecoded(bytes.span), as: UTF8.self)
    }
}

/// auth-v4 as deployed servers check it. Source: docs/protocol.md, "`auth-v4`".
///
/// Its flaws: the timestamp is not signed, so that a valid request stays valid for ever; names are signed in
/// lower case, and of those that become equal the first counts, while the application distinguishes them and
/// takes the last of two equal names; a value's type is not signed; requests are not remembered, so they can
/// be replayed.
struct ReferenceAuthV4: ReferenceScheme {
    let app: AppKey
    /// `http` or `https`: the URL is signed as the client saw it.
    let protocolName: String

    func caller(_ request: RawRequest) -> ReferenceCaller {
        guard request.fields["x-auth-version"] == "4", request.fields["x-auth-client-id"] == app.id else {
            return .refused(ReferenceRefusal.unauthorized("unknown client"))
        }
        let timestamp = LenientParameters.leadingNumber(request.fields["x-auth-timestamp"] ?? "")
        guard abs(timestamp - Int(time(nil))) < 12 * 3600 else {
            return .refused(ReferenceRefusal.unauthorized("the timestamp is too old"))
        }
        let url = "\(protocolName)://\(request.fields["host"] ?? "")\(request.target)"
        let text = "\(request.method)\n\(url)\n\(ReferenceAuthV4.params(request.body))"
        let mac = ReferenceHash.hmacSHA256(text, key: app.secret)
        guard ReferenceHash.isEqual(mac, to: request.fields["x-auth-signature"] ?? "") else {
            return .refused(ReferenceRefusal.unauthorized("the signature is wrong"))
        }
        return ReferenceAuthParameters.caller(request)
    }

    private static func params(_ body: [UInt8]) -> String {
        var folded: [String: String] = [:]
        var members = JSONMembers()
        do {
            while let member = try members.next(in: body.span) {
                var name: [UInt8] = []
                try JSONMembers.forEachByte(of: member.name, in: body.span) { name.append($0) }
                let folding = String(decoding: name, as: UTF8.self).lowercased()
                if folded[folding] == nil { folded[folding] = try value(of: member, in: body) }
            }
        } catch {
            return ""
        }
        let sorted = folded.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        return sorted.map { "\(escaped(Array($0.key.utf8)))=\($0.value)" }.joined(separator: "&")
    }

    private static func value(of member: JSONMembers.Member, in body: [UInt8]) throws(ParseError) -> String {
        let raw = Array(body[member.value.range])
        switch member.kind {
        case .null, .emptyContainer: return ""
        case .yes: return "1"
        case .no: return "0"
        case .number: return String(decoding: raw, as: UTF8.self)
        case .container: return escaped(raw)
        case .string:
            var bytes: [UInt8] = []
            try JSONMembers.forEachByte(of: member.value, in: body.span) { bytes.append($0) }
            return escaped(bytes)
        }
    }

    private static func escaped(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        PercentEncoding.encode(bytes.span, into: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
