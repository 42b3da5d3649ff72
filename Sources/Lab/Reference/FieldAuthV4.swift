import CountersignWire
import Glibc

/// L4 as the field checks it. Source: legacy, L4.
///
/// What is wrong with it: the timestamp is not signed, so that what was valid once is valid for ever; names are signed in lower case, and of
/// those that are one so the first counts, while the application tells them apart and takes the last of two that are alike; a value's type
/// is not signed; nothing remembers what came before.
struct FieldAuthV4: FieldScheme {
    let app: AppKey
    /// `http` or `https`: the URL is signed as the client saw it.
    let protocolName: String

    func caller(_ request: RawRequest) -> FieldCaller {
        guard request.fields["x-auth-version"] == "4", request.fields["x-auth-client-id"] == app.id else {
            return .refused(FieldAnswer.unauthorized("unknown client"))
        }
        let timestamp = FieldParameters.leadingNumber(request.fields["x-auth-timestamp"] ?? "")
        guard abs(timestamp - Int(time(nil))) < 12 * 3600 else {
            return .refused(FieldAnswer.unauthorized("the timestamp is too old"))
        }
        let url = "\(protocolName)://\(request.fields["host"] ?? "")\(request.target)"
        let text = "\(request.method)\n\(url)\n\(FieldAuthV4.params(request.body))"
        let mac = FieldHashing.hmacSHA256(text, key: app.secret)
        guard FieldHashing.isSame(mac, request.fields["x-auth-signature"] ?? "") else {
            return .refused(FieldAnswer.unauthorized("the signature is wrong"))
        }
        return FieldAuthParameters.caller(request)
    }

    private static func params(_ body: [UInt8]) -> String {
        var folded: [String: String] = [:]
        var members = JSONMembers()
        do throws(MalformedJSON) {
            while let member = try members.next(in: body.span) {
                var name: [UInt8] = []
                try JSONMembers.forEachByte(of: member.name, in: body.span) { name.append($0) }
                let folding = String(decoding: name, as: UTF8.self).lowercased()
                if folded[folding] == nil { folded[folding] = try value(member, body) }
            }
        } catch {
            return ""
        }
        let sorted = folded.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        return sorted.map { "\(escaped(Array($0.key.utf8)))=\($0.value)" }.joined(separator: "&")
    }

    private static func value(_ member: JSONMembers.Member, _ body: [UInt8]) throws(MalformedJSON) -> String {
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
        Percent.encode(bytes.span, into: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
