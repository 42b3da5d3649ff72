import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignOpaque

/// Reads `Vectors/`. Its values are hexadecimal, but for `name`.
struct Vector: Sendable, CustomTestStringConvertible {
    let values: [String: String]

    static func load(_ path: String) throws -> [Vector] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Vectors")
        let file = try JSONDecoder().decode(
            [String: [[String: String]]].self, from: Data(contentsOf: folder.appending(path: path)))
        let cases = try #require(file["cases"])
        try #require(!cases.isEmpty, "\(path) has no cases")
        return cases.map { Vector(values: $0) }
    }

    var testDescription: String { values["name"] ?? "?" }

    /// Nil where the case has no such value.
    func optional(_ name: String) -> [UInt8]? { values[name].flatMap(Hex.decode) }

    func bytes(_ name: String) throws -> [UInt8] {
        try #require(optional(name), "\(testDescription) has no \(name)")
    }

    func secret(_ name: String) throws -> Secret {
        let bytes = try bytes(name)
        return Secret(copying: bytes.span)
    }

    func scalar(_ name: String) throws -> Ristretto255.Scalar {
        try #require(Ristretto255.Scalar(try secret(name)))
    }

    func element(_ name: String) throws -> Ristretto255.Element {
        try #require(Ristretto255.Element(try bytes(name)))
    }

    func password(_ name: String) throws -> Password { try #require(Password(try secret(name))) }

    var parties: Parties {
        func identity(_ name: String) -> PartyIdentity {
            optional(name).flatMap(PartyIdentity.Name.init).map(PartyIdentity.name) ?? .publicKey
        }
        return Parties(client: identity("client_identity"), server: identity("server_identity"))
    }

    func serverKeys() throws -> ServerKeys {
        let bytes = Secret(joining: [try secret("oprf_seed"), try secret("server_private_key")])
        let keys = try ServerKeys(bytes)
        return try #require(keys)
    }

    func context() throws -> LoginContext { try #require(LoginContext(try bytes("context"))) }
}

extension Secret {
    var exposed: [UInt8] { withExposedBytes { bytes in (0..<bytes.count).map { bytes[$0] } } }
}
