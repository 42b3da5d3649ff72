import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

/// Reads `Vectors/` beside this package's tests.
enum Vectors {
    static func load<Case: Decodable>(_ path: String, as type: Case.Type) throws -> [Case] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Vectors")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let cases = try decoder.decode(
            VectorFile<Case>.self, from: Data(contentsOf: folder.appending(path: path))
        )
        .cases
        try #require(!cases.isEmpty, "\(path) has no cases")
        return cases
    }
}

private struct VectorFile<Case: Decodable>: Decodable { var cases: [Case] }

struct SignedMessage: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var method: String
    var transport: String
    var authority: String
    var target: String
    var fields: [[String]]
    var body: String
    var keyId: String
    /// Hexadecimal; or, of a key pair, the public half as PEM and what it is for.
    var secret: String?
    var publicKey: String?
    var algorithm: KeyAlgorithm?
    var created: Int64
    var stringToSign: String

    var testDescription: String { name }

    var draft: Draft {
        var draft = Draft(
            method: method, target: Array(target.utf8), authority: authority,
            transport: transport == "http" ? .plain : .tls)
        for field in fields { draft.fields.append(Draft.Field(name: field[0], value: field[1])) }
        draft.body = Array(body.utf8)
        return draft
    }

    /// Of the signature, whatever its tag.
    var label: String { String(fields.first { $0[0] == "Signature" }?[1].prefix { $0 != "=" } ?? "") }

    func key() throws -> SigningKey {
        if let publicKey {
            return SigningKey(try PublicKey(pem: Array(publicKey.utf8).span, algorithm: algorithm))
        }
        let bytes = try #require(secret.flatMap { Hex.decode($0) })
        return SigningKey(Secret(copying: bytes.span))
    }

    /// Whether the message's own signature holds under the key.
    func holds() throws -> Bool {
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(
            try MessageSignatures().claim(in: request, labelled: label, workspace: &workspace))
        try MessageSignatures().writeStringToSign(for: claim, of: request, into: &workspace)
        let key = try key()
        if let publicKey = key.publicKey {
            let signature = claim.signature(orShort: claim.mac, in: workspace)
            return publicKey.verify(signature, of: workspace.text.bytes.span) == .equal
        }
        return key.mac(claim.algorithm, of: workspace.text).array == claim.mac.array
    }
}

extension KeyAlgorithm: Decodable {}

/// A sigv4 request with every intermediate.
struct AmazonRequest: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var method: String
    var authority: String
    var target: String
    var fields: [[String]]
    var body: String
    var keyId: String
    var secret: String
    var created: Int64
    /// `standard`, `sorted` or `as-written`: which the client signed.
    var spelling: String
    var canonicalRequest: String
    var canonicalRequestSha256: String
    var stringToSign: String
    var signingKey: String
    var signature: String

    var testDescription: String { name }

    var draft: Draft {
        var draft = Draft(method: method, target: Array(target.utf8), authority: authority)
        for field in fields where field[0] != "Host" {
            draft.fields.append(Draft.Field(name: field[0], value: field[1]))
        }
        // The field stands for the authority where botocore was told another.
        if let host = fields.first(where: { $0[0] == "Host" }) { draft.authority = host[1] }
        draft.body = Array(body.utf8)
        return draft
    }

    var key: Secret { Secret(copying: Array(secret.utf8).span) }
}

struct SignedForm: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var privateKey: String
    var parameters: [[String]]
    var sign: String
    var form: String
    var stringToSign: String

    var testDescription: String { name }

    var key: Secret { Secret(copying: Array(privateKey.utf8).span) }

    func value(_ name: String) -> String { parameters.first { $0[0] == name }?[1] ?? "" }
}
