import CountersignSchemes
import CountersignWire

/// Signing for the commands that do it: a draft that cannot be signed was asked for wrongly.
package enum RequestSigner {
    static func sign(
        _ draft: inout Draft, scheme name: SchemeName, credentials: Credentials, at: Int64, nonce: String,
        alsoCovering components: [String] = []
    ) throws(OperationalError) {
        guard var scheme = SchemeRegistry.standard.scheme(named: name) else {
            throw OperationalError(.usage, message: "\(name.rawValue): this build does not speak it")
        }
        if !components.isEmpty { scheme = MessageSignatures(alsoCovering: components) }
        do {
            try scheme.sign(&draft, as: credentials, at: at, nonce: nonce)
        } catch {
            throw OperationalError(.usage, message: "cannot be signed with \(name.rawValue): \(error.detail)")
        }
    }

    /// A component as people write it, `@target-uri` or `"@query-param";name="page"`, as a signature base has
    /// it.
    static func component(_ text: String) throws(OperationalError) -> String {
        if text.hasPrefix("\"") { return text }
        let name = text.prefix { $0 != ";" }
        guard !name.isEmpty, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C })
        else {
            throw OperationalError(
                .usage, message: "--component `\(text)`: expected a field in lower case, or a name with @")
        }
        return "\"\(name)\"\(text.dropFirst(name.count))"
    }

    /// sigv4's scope, for every command that signs.
    package static let scopeOptions: [Option] = [
        .value(
            "region", placeholder: "NAME",

            meaning: "sigv4: the region that is signed (default: countersign)"),
        .value(
            "service", placeholder: "NAME",
            meaning: "sigv4: the service that is signed (default: execute-api)"),
    ]

    package static func setScope(of credentials: inout Credentials, from run: Invocation) {
        if let region = run.arguments.value("region") { credentials.region = region }
        if let service = run.arguments.value("service") { credentials.service = service }
    }

    static func presign(
        _ draft: inout Draft, scheme name: SchemeName, credentials: Credentials, at: Int64,
        lifetime text: String
    ) throws(OperationalError) {
        guard name == .sigV4 else {
            throw OperationalError(.usage, message: "--presign: only sigv4 has presigned URLs")
        }
        guard let lifetime = TimeText.unixSeconds(text), (1...604_800).contains(lifetime) else {
            throw OperationalError(.usage, message: "--presign `\(text)`: expected 1 to 604800 seconds")
        }
        do {
            try SigV4().presign(&draft, as: credentials, at: at, lifetime: lifetime)
        } catch {
            throw OperationalError(.usage, message: "cannot be presigned: \(error.detail)")
        }
    }

    static func json(_ draft: Draft) -> JSONValue {
        let host: JSONValue = ["name": "Host", "value": .string(draft.authority)]
        let fields = draft.fields.map { field -> JSONValue in
            ["name": .string(field.name), "value": .string(String(decoding: field.value, as: UTF8.self))]
        }
        return [
            "method": .string(draft.method), "target": .string(String(decoding: draft.target, as: UTF8.self)),
            "headers": .array([host] + fields),
            "body_base64url": .string(Base64.encode(draft.body.span, as: .url)),
        ]
    }
}

extension Nonce {
    /// One that was given, checked: 8 to 64 letters, digits, `-` and `_`.
    static func read(_ text: String) throws(OperationalError) -> String {
        let bytes = text.utf8
        guard (8...64).contains(bytes.count),
            bytes.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == 0x2D || $0 == 0x5F })
        else {
            throw OperationalError(.usage, message: "--nonce: expected 8 to 64 letters, digits, `-` and `_`")
        }
        return text
    }
}
