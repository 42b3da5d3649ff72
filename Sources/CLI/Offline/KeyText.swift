import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A key as people keep it: a shared secret's text, or one half of a key pair in a PEM file.
package enum KeyText {
    package static let explanation = """
        \(SecretText.explanation)
        A PEM file with a private key (PKCS #8) signs and verifies, one with a public key (SPKI) verifies:
        Ed25519, P-256, P-384, or RSA, for which --algorithm says which of its two is meant.
        """

    /// `algorithm` is needed for RSA; for other keys it may be nil, and must fit where it is not.
    package static func key(
        _ bytes: [UInt8], bare: SecretText.UnprefixedForm, algorithm: KeyAlgorithm?, at place: String
    ) throws(OperationalError) -> SigningKey {
        guard PEM.looksLike(bytes.span) else {
            guard algorithm == nil || algorithm == .hmacSHA256 else {
                throw OperationalError(
                    .usage,
                    message: "\(place): expected a PEM file with a key for \(algorithm?.rawValue ?? "it")")
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
            throw OperationalError(.usage, message: "\(place): \(error)")
        }
    }

    static func publicKey(_ path: String, algorithm: KeyAlgorithm?) throws(OperationalError) -> PublicKey {
        let bytes = try Console.readFile(path, limit: PEM.longest)
        do {
            if try PEM.read(bytes.span).kind == .publicKey {
                return try PublicKey(pem: bytes.span, algorithm: algorithm)
            }
        } catch {
            throw OperationalError(.usage, message: "\(path): \(error)")
        }
        throw OperationalError(
            .usage,
            message: "\(path): a private key, which belongs to the signer alone; expected the public one")
    }
}

extension Option {
    package static let algorithm = Option.value(
        "algorithm", placeholder: "NAME",
        meaning: "the key's algorithm by its RFC 9421 name, where the key does not say it (RSA)")
}

extension Invocation {
    /// What `--algorithm` says; nil without it.
    package func algorithm() throws(OperationalError) -> KeyAlgorithm? {
        guard let text = arguments.value("algorithm") else { return nil }
        guard let algorithm = KeyAlgorithm(rawValue: text) else {
            let names = KeyAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
            throw OperationalError(.usage, message: "--algorithm `\(text)`: expected one of \(names)")
        }
        return algorithm
    }
}

/// How a secret is written down: `text:…`, `hex:…` or `base64url:…`, or bare, which means what the place
/// says.
package enum SecretText {
    /// What a bare text is.
    package enum UnprefixedForm: Sendable {
        /// The key as it stands: what a team brings along.
        case theKeyItself
        /// For message-signatures, the base64url of 32 bytes that `release add` prints, where it is that;
        /// else the key as it stands.
        case asPrinted(SchemeName)
    }

    static let explanation = """
        A secret may be written text:…, hex:… or base64url:…. Without a prefix it is the text itself, except \
        that for
        message-signatures 43 characters of base64url, as `release add` prints them, are the 32 bytes they \
        stand for.
        """

    static func secret(_ text: Secret, bare: UnprefixedForm, at place: String) throws(OperationalError)
        -> Secret
    {
        let bytes = text.withExposedBytes { span in (0..<span.count).map { span[$0] } }
        return try secret(bytes, bare: bare, at: place)
    }

    static func secret(_ bytes: [UInt8], bare: UnprefixedForm, at place: String) throws(OperationalError)
        -> Secret
    {
        let key: [UInt8]?
        let expected: String
        if let rest = after("text:", in: bytes) {
            (key, expected) = (rest, "text")
        } else if let rest = after("hex:", in: bytes) {
            (key, expected) = (
                Hex.decode(String(decoding: rest.map(ASCII.lowercased), as: UTF8.self)), "hexadecimal digits"
            )
        } else if let rest = after("base64url:", in: bytes) {
            (key, expected) = (Base64.decode(rest.span, as: .url), "base64url without padding")
        } else {
            (key, expected) = (readUnprefixed(bytes, as: bare), "a secret")
        }
        guard let key, !key.isEmpty, key.count <= 4096 else {
            throw OperationalError(.usage, message: "\(place): expected \(expected), 1 to 4096 bytes")
        }
        return Secret(copying: key.span)
    }

    private static func readUnprefixed(_ bytes: [UInt8], as bare: UnprefixedForm) -> [UInt8] {
        guard case .asPrinted(.messageSignatures) = bare, bytes.count == 43,
            let decoded = Base64.decode(bytes.span, as: .url), decoded.count == 32
        else { return bytes }
        return decoded
    }

    private static func after(_ prefix: StaticString, in bytes: [UInt8]) -> [UInt8]? {
        let count = prefix.utf8CodeUnitCount
        guard bytes.count >= count else { return nil }
        for index in 0..<count where bytes[index] != prefix.utf8Start[index] { return nil }
        return Array(bytes[count...])
    }
}

extension Option {
    package static let secret = Option.value(
        "secret", placeholder: "S",
        meaning: "the key's secret (others on the machine see it in the process list)")
    package static let secretFile = Option.value(
        "secret-file", placeholder: "F", meaning: "a file that holds it")
    package static let secretStdin = Option.flag("secret-stdin", meaning: "read it from standard input")
}

extension Invocation {
    /// The secret's text from the one place where it is given; nil where it is given nowhere.
    package func secretText() throws(OperationalError) -> (text: [UInt8], place: String)? {
        var found: [(text: [UInt8], place: String)] = []
        if let text = arguments.value("secret") { found.append((Array(text.utf8), "--secret")) }
        if let path = arguments.value("secret-file") {
            found.append((Invocation.trimmed(try Console.readFile(path, limit: 65_536)), path))
        }
        if arguments.has("secret-stdin") {
            found.append((Invocation.trimmed(try console.read(limit: 65_536)), "standard input"))
        }
        guard found.count <= 1 else {
            throw OperationalError(.usage, message: "the secret is given twice; expected one of --secret…")
        }
        if let given = found.first { return given }
        return environment[Invocation.secretVariable].map { (Array($0.utf8), Invocation.secretVariable) }
    }

    static let secretVariable = "COUNTERSIGN_SECRET"

    /// Without the end of line that files and pipes end in.
    static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        if bytes.last == 0x0A { bytes.removeLast() }
        if bytes.last == 0x0D { bytes.removeLast() }
        return bytes
    }
}
