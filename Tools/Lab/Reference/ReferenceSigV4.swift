import CountersignSeal
import CountersignWire
import Glibc

/// AWS Signature Version 4 in its header form, verified as specified, including the body. The verification
/// has no flaw: the scheme itself allows a replay for fifteen minutes, and its key is in the app. Source: AWS
/// General Reference, "Signature Version 4 signing process".
struct ReferenceSigV4: ReferenceScheme {
    static let window: Int64 = 900

    let app: AppKey

    func caller(_ request: RawRequest) -> ReferenceCaller {
        guard let claim = Claim(request.fields["authorization"] ?? ""), claim.keyID == app.id,
            claim.signedFields.contains("host"), claim.signedFields.contains("x-amz-date")
        else { return .refused(ReferenceRefusal.unauthorized("unknown key")) }
        let stamp = request.fields["x-amz-date"] ?? ""
        let bytes = Array(stamp.utf8)
        guard let time = CivilTime(basic: bytes.span)?.seconds, stamp.hasPrefix(claim.scope.prefix(8)),
            abs(time - Int64(Glibc.time(nil))) <= ReferenceSigV4.window
        else { return .refused(ReferenceRefusal.unauthorized("the time is too far off")) }
        let canonical = ReferenceSigV4.canonicalRequest(for: request, signedFields: claim.signedFields)
        let text =
            "AWS4-HMAC-SHA256\n\(stamp)\n\(claim.scope)\n\(ReferenceHash.sha256(Array(canonical.utf8)))"
        let mac = ReferenceHash.hmacSHA256(text, key: signingKey(claim.scope))
        guard ReferenceHash.isEqual(Hex.encode(mac.span), to: claim.signature) else {
            return .refused(ReferenceRefusal.unauthorized("the signature is wrong"))
        }
        return ReferenceAuthParameters.caller(request)
    }

    private func signingKey(_ scope: String) -> [UInt8] {
        scope.split(separator: "/").reduce(Array("AWS4\(app.secret.exposedText)".utf8)) { key, part in
            ReferenceHash.hmacSHA256(String(part), key: key)
        }
    }

    private static func canonicalRequest(for request: RawRequest, signedFields names: [String]) -> String {
        let pairs = LenientParameters.query(of: request).pairs.map { (escaped($0.name), escaped($0.value)) }
        let query = pairs.sorted { $0 < $1 }.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
        let fields = names.map { name in
            let values = request.fields.lines.filter { $0.name.lowercased() == name }.map(\.value)
            return "\(name):\(values.joined(separator: ","))\n"
        }
        return [
            request.method, escaped(request.path, keeping: "/"), query, fields.joined(),
            names.joined(separator: ";"), ReferenceHash.sha256(request.body),
        ].joined(separator: "\n")
    }

    /// Percent-encodes everything except `kept`, a path's slash.
    private static func escaped(_ text: String, keeping kept: Character? = nil) -> String {
        let parts =
            kept.map { text.split(separator: $0, omittingEmptySubsequences: false) } ?? [Substring(text)]
        return parts.map { part in
            let bytes = Array(part.utf8)
            var text: [UInt8] = []
            PercentEncoding.encode(bytes.span, into: &text)
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
