import CountersignWire
import Glibc

/// What L2 and L3 have in common: parameters in `auth_` beside the app's own, in the query or in a form. Source: legacy, L2 and L3.
struct FieldAuthParameters {
    let pairs: [FieldParameters.Pair]

    init(_ request: RawRequest) {
        let query = FieldParameters.query(of: request)
        pairs = query["auth_signature"] != nil ? query.pairs : FieldParameters.body(of: request).pairs
    }

    subscript(name: String) -> String? { FieldParameters(pairs)[name] }

    /// Whether `auth_timestamp` is less than so many seconds from now; read as `intval` reads.
    func isWithin(_ seconds: Int) -> Bool {
        abs(FieldParameters.leadingNumber(self["auth_timestamp"] ?? "") - Int(time(nil))) < seconds
    }

    /// `k=v`, sorted by the bytes of the names before `[]` is added, joined by `&`, nothing escaped.
    static func joined(_ pairs: some Sequence<FieldParameters.Pair>) -> String {
        func name(_ pair: FieldParameters.Pair) -> String {
            pair.name.hasSuffix("[]") ? String(pair.name.dropLast(2)) : pair.name
        }
        let sorted = pairs.sorted { name($0).utf8.lexicographicallyPrecedes(name($1).utf8) }
        return sorted.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    /// The app says whose money it is about, and the server has no other way to know. The parameters of the query are read first, then those
    /// of the body, signed or not.
    static func caller(_ request: RawRequest) -> FieldCaller {
        let parameters = FieldParameters(request)
        guard let user = parameters["user"] else { return .refused(RawResponse(400, json: ["reason": "no user"])) }
        return .known(name: user, parameters)
    }
}

/// L2 as the field checks it. Source: legacy, L2.
///
/// What is wrong with it: a body beside a signed query is not looked at, nor its `body_md5`, and the application reads it all the same; names
/// are signed in lower case, and of two that are one so the last counts, while the application tells them apart; `&` in a value
/// is not escaped; what follows the figures of the timestamp is not looked at; nothing remembers what came before.
struct FieldAuthV1: FieldScheme {
    let app: AppKey

    func caller(_ request: RawRequest) -> FieldCaller {
        let auth = FieldAuthParameters(request)
        guard auth["auth_key"] == app.id else { return .refused(FieldAnswer.unauthorized("unknown key")) }
        guard auth.isWithin(600) else { return .refused(FieldAnswer.unauthorized("the timestamp is too old")) }
        var folded: [String: String] = [:]
        var arrays: [FieldParameters.Pair] = []
        for pair in auth.pairs where pair.name != "auth_signature" {
            let name = pair.name.lowercased()
            if name.hasSuffix("[]") { arrays.append((name, pair.value)) } else { folded[name] = pair.value }
        }
        let params = FieldAuthParameters.joined(folded.map { (name: $0.key, value: $0.value) } + arrays)
        let mac = FieldHashing.hmacSHA256("\(request.method)\n\(request.path)\n\(params)", key: app.secret)
        guard FieldHashing.isSame(mac, auth["auth_signature"] ?? "") else {
            return .refused(FieldAnswer.unauthorized("the signature is wrong"))
        }
        return FieldAuthParameters.caller(request)
    }
}

/// L3 as the reference server of the field checks it. Source: legacy, L3.
///
/// What is wrong with it: no parameter whose name begins with `auth_` is signed, the timestamp too, so that what was valid once is valid for
/// ever; what is joined is decoded once more; and all that is wrong with L2 but the case of names.
struct FieldAuthV2: FieldScheme {
    let app: AppKey

    func caller(_ request: RawRequest) -> FieldCaller {
        let auth = FieldAuthParameters(request)
        guard auth["auth_client_id"] ?? auth["auth_key"] == app.id else {
            return .refused(FieldAnswer.unauthorized("unknown client"))
        }
        guard auth.isWithin(12 * 3600) else { return .refused(FieldAnswer.unauthorized("the timestamp is too old")) }
        let params = FieldAuthParameters.joined(auth.pairs.filter { !$0.name.hasPrefix("auth_") })
        let text = "\(request.method)\n\(decoded(request.path))\n\(decoded(params))"
        guard FieldHashing.isSame(FieldHashing.hmacSHA256(text, key: app.secret), auth["auth_signature"] ?? "") else {
            return .refused(FieldAnswer.unauthorized("the signature is wrong"))
        }
        return FieldAuthParameters.caller(request)
    }

    private func decoded(_ text: String) -> String {
        let bytes = Array(text.utf8)
        return String(decoding: Form.forgivinglyDecoded(bytes.span), as: UTF8.self)
    }
}
