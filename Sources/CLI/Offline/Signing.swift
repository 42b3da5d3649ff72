import CountersignSchemes
import CountersignWire

/// Signing for the commands that do it: a draft that cannot be signed was asked for wrongly.
enum Signing {
    static func sign(
        _ draft: inout Draft, _ name: SchemeName, _ credentials: Credentials, at: Int64, nonce: String
    ) throws(Fault) {
        guard let scheme = Registry.standard.scheme(named: name) else {
            throw Fault(.usage, "\(name.rawValue): this build does not speak it")
        }
        do {
            try scheme.sign(&draft, as: credentials, at: at, nonce: nonce)
        } catch {
            throw Fault(.usage, "cannot be signed with \(name.rawValue): \(error.detail)")
        }
    }

    static func json(_ draft: Draft) -> JSONValue {
        let host: JSONValue = ["name": "Host", "value": .string(draft.authority)]
        let fields = draft.fields.map { field -> JSONValue in
            ["name": .string(field.name), "value": .string(String(decoding: field.value, as: UTF8.self))]
        }
        return [
            "method": .string(draft.method), "target": .string(String(decoding: draft.target, as: UTF8.self)),
            "headers": .array([host] + fields), "body_base64url": .string(Base64.encode(draft.body.span, .url)),
        ]
    }
}
