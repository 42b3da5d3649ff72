import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A key as people keep it: a shared secret's text, or one half of a key pair in a PEM file.
enum KeyText {
    static let explanation = """
        \(SecretText.explanation) A PEM file with a private key (PKCS #8) signs and verifies, one with a public key (SPKI)
        verifies: Ed25519, P-256, P-384, or RSA, for which --algorithm says which of its two is meant.
        """

    /// `algorithm` is needed for RSA; for other keys it may be nil, and must fit where it is not.
    static func key(
        _ bytes: [UInt8], bare: SecretText.Bare, algorithm: KeyAlgorithm?, at place: String
    ) throws(Fault) -> SigningKey {
        guard PEM.looksLike(bytes.span) else {
            guard algorithm == nil || algorithm == .hmacSHA256 else {
                throw Fault(.usage, "\(place): expected a PEM file with a key for \(algorithm?.rawValue ?? "it")")
            }
            return SigningKey(try SecretText.secret(bytes, bare: bare, at: place))
        }
        do {
            // A private key for rsa-v1_5-sha256 is good for its public half only.
            if try PEM.read(bytes.span).kind == .privateKey, algorithm != .rsaV15 {
                return SigningKey(try PrivateKey(pem: bytes.span, algorithm: algorithm))
            }
            return SigningKey(try PublicKey(pem: bytes.span, algorithm: algorithm))
        } catch {
            throw Fault(.usage, "\(place): expected \(error.expected)")
        }
    }

    static func publicKey(_ path: String, algorithm: KeyAlgorithm?) throws(Fault) -> PublicKey {
        let bytes = try Console.readFile(path, limit: PEM.longest)
        do {
            guard try PEM.read(bytes.span).kind == .publicKey else {
                throw Fault(.usage, "\(path): a private key, which stays with who signs; expected the public one")
            }
            return try PublicKey(pem: bytes.span, algorithm: algorithm)
        } catch let fault as Fault {
            throw fault
        } catch {
            throw Fault(.usage, "\(path): expected \((error as? KeyProblem)?.expected ?? "a public key")")
        }
    }
}

extension Option {
    static let algorithm = Option.value(
        "algorithm", "NAME", "the key's algorithm by its RFC 9421 name, where the key does not say it (RSA)")
}

extension Invocation {
    /// What `--algorithm` says; nil without it.
    func algorithm() throws(Fault) -> KeyAlgorithm? {
        guard let text = arguments.value("algorithm") else { return nil }
        guard let algorithm = KeyAlgorithm(rawValue: text) else {
            let names = KeyAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
            throw Fault(.usage, "--algorithm `\(text)`: expected one of \(names)")
        }
        return algorithm
    }
}
