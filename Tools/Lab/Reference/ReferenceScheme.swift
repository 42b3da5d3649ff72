import CountersignSeal
import CountersignWire

/// Refusals as legacy clients expect them: `err` with a code. Source: docs/protocol.md, "Answers".
enum ReferenceRefusal {
    /// Under HTTP 200: such clients look for `err` in a successful response.
    static func error(code: Int64, message: String) -> RawResponse {
        RawResponse(json: body(code: code, message: message))
    }

    /// For schemes whose clients evaluate the status.
    static func unauthorized(_ message: String) -> RawResponse {
        RawResponse(401, json: body(code: -1, message: message))
    }

    private static func body(code: Int64, message: String) -> JSONValue {
        ["err": ["code": .integer(code), "msg": .string(message)]]
    }

    static let sessionOver = error(code: -100, message: "the session is over")
    static let tokenRanOut = error(code: -101, message: "the token ran out")
    static let badSignature = error(code: -1, message: "the signature is wrong")
}

/// Authenticates callers of a reference server, and answers its login pages.
protocol ReferenceScheme: Sendable {
    /// The value that the server stores for a password; nil if the scheme has no passwords.
    func storedForm(of password: String) throws(LabError) -> String?
    /// The response of a page of the scheme; nil for all other paths.
    func page(_ request: RawRequest) throws(LabError) -> RawResponse?
    /// The account that a request for the bank acts for and the parameters that the bank reads, or the
    /// refusal.
    func caller(_ request: RawRequest) throws(LabError) -> ReferenceCaller
}

extension ReferenceScheme {
    func storedForm(of password: String) -> String? { nil }
    func page(_ request: RawRequest) -> RawResponse? { nil }
}

enum ReferenceCaller {
    case known(name: String, LenientParameters)
    case refused(RawResponse)
}

/// The hash functions of the legacy schemes, over text, with results in lower-case hexadecimal.
enum ReferenceHash {
    static func md5(_ text: String) -> String { md5(Array(text.utf8)) }

    static func md5(_ bytes: [UInt8]) -> String { Hex.encode(MD5.digest(bytes.span).span) }

    static func hmacMD5(_ text: String, key: String) -> String {
        let (message, key) = (Array(text.utf8), Array(key.utf8))
        return Hex.encode(HMACMD5.authenticate(message.span, key: key.span).span)
    }

    static func hmacSHA256(_ text: String, key: Secret) -> String {
        let message = Array(text.utf8)
        let mac = key.withExposedBytes { key in DiagnosticHash.sha256.hmac(key: key, message: message.span) }
        return Hex.encode(mac.span)
    }

    static func hmacSHA256(_ text: String, key: [UInt8]) -> [UInt8] {
        let message = Array(text.utf8)
        return DiagnosticHash.sha256.hmac(key: key.span, message: message.span)
    }

    static func sha256(_ bytes: [UInt8]) -> String { Hex.encode(SHA256.digest(bytes.span).span) }

    /// Compares byte by byte up to the first difference, as `==` does: the duration reveals the length of the
    /// equal prefix.
    static func isEqual(_ left: String, to right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
}

extension Secret {
    /// The text of an app's key.
    var exposedText: String {
        withExposedBytes { bytes in bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }
    }
}
