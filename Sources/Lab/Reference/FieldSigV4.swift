import CountersignSeal
import CountersignWire
import Glibc

/// AWS Signature Version 4 in its header form, checked as its authors describe it, body and all. Nothing is wrong with the check itself: what
/// the scheme leaves open is that a request may come again for fifteen minutes, and that its key lies in the app. Source: AWS General
/// Reference, "Signature Version 4 signing process".
struct FieldSigV4: FieldScheme {
    static let window: Int64 = 900

    let app: AppKey

    func caller(_ request: RawRequest) -> FieldCaller {
        guard let claim = Claim(request.fields["authorization"] ?? ""), claim.keyID == app.id,
            claim.signedFields.contains("host"), claim.signedFields.contains("x-amz-date")
        else { return .refused(FieldAnswer.unauthorized("unknown key")) }
        let stamp = request.fields["x-amz-date"] ?? ""
        let bytes = Array(stamp.utf8)
        guard let time = CivilTime(basic: bytes.span)?.seconds, stamp.hasPrefix(claim.scope.prefix(8)),
            abs(time - Int64(Glibc.time(nil))) <= FieldSigV4.window
        else { return .refused(FieldAnswer.unauthorized("the time is too far off")) }
        let canonical = FieldSigV4.canonical(request, claim.signedFields)
        let text = "AWS4-HMAC-SHA256\n\(stamp)\n\(claim.scope)\n\(FieldHashing.sha256(Array(canonical.utf8)))"
        let mac = FieldHashing.hmacSHA256(text, key: signingKey(claim.scope))
        guard FieldHashing.isSame(Hex.encode(mac.span), claim.signature) else {
            return .refused(FieldAnswer.unauthorized("the signature is wrong"))
        }
        return FieldAuthParameters.caller(request)
    }

    private func signingKey(_ scope: String) -> [UInt8] {
        scope.split(separator: "/").reduce(Array("AWS4\(app.secret.fieldText)".utf8)) { key, part in
            FieldHashing.hmacSHA256(String(part), key: key)
        }
    }

    private static func canonical(_ request: RawRequest, _ names: [String]) -> String {
        let pairs = FieldParameters.query(of: request).pairs.map { (escaped($0.name), escaped($0.value)) }
        let query = pairs.sorted { $0 < $1 }.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
        let fields = names.map { name in
            let values = request.fields.lines.filter { $0.name.lowercased() == name }.map(\.value)
            return "\(name):\(values.joined(separator: ","))\n"
        }
        return [
            request.method, escaped(request.path, keeping: "/"), query, fields.joined(),
            names.joined(separator: ";"), FieldHashing.sha256(request.body),
        ].joined(separator: "\n")
    }

    /// Percent-encoded, but for a path's slashes.
    private static func escaped(_ text: String, keeping kept: Character? = nil) -> String {
        let parts = kept.map { text.split(separator: $0, omittingEmptySubsequences: false) } ?? [Substring(text)]
        return parts.map { part in
            let bytes = Array(part.utf8)
            var text: [UInt8] = []
            Percent.encode(bytes.span, into: &text)
            return String(decoding: text, as: UTF8.self)
        }.joined(separator: kept.map { String($0) } ?? "")
    }

    /// `AWS4-HMAC-SHA256 Credential=ID/SCOPE, SignedHeaders=A;B, Signature=HEX`
    private struct Claim {
        var keyID: String
        var scope: String
        var signedFields: [String]
        var signature: String

        init?(_ authorization: String) {
            guard authorization.hasPrefix("AWS4-HMAC-SHA256 ") else { return nil }
            var members: [String: String] = [:]
            for part in authorization.dropFirst(17).split(separator: ",") {
                let pair = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
                if pair.count == 2 { members[String(pair[0])] = String(pair[1]) }
            }
            guard let credential = members["Credential"], let slash = credential.firstIndex(of: "/"),
                let fields = members["SignedHeaders"], let signature = members["Signature"]
            else { return nil }
            keyID = String(credential[..<slash])
            scope = String(credential[credential.index(after: slash)...])
            signedFields = fields.split(separator: ";").map(String.init)
            self.signature = signature
        }
    }
}
