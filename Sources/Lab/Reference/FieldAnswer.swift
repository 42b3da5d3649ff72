import CountersignWire

/// Refusals as the field's clients expect them: `err` with a code. Source: legacy, L1.
enum FieldAnswer {
    /// Under HTTP 200: such clients look for `err` in an answer that succeeded.
    static func err(_ code: Int64, _ message: String) -> RawResponse { RawResponse(json: body(code, message)) }

    /// For the schemes whose clients do look at the status.
    static func unauthorized(_ message: String) -> RawResponse { RawResponse(401, json: body(-1, message)) }

    private static func body(_ code: Int64, _ message: String) -> JSONValue {
        ["err": ["code": .integer(code), "msg": .string(message)]]
    }

    static let sessionOver = err(-100, "the session is over")
    static let tokenRanOut = err(-101, "the token ran out")
    static let badSignature = err(-1, "the signature is wrong")
}

/// Who authenticates callers at a server of the field, and answers the pages of its own login.
protocol FieldScheme: Sendable {
    /// What the server keeps for a password; nil where its scheme has none.
    func kept(_ password: String) throws(StageFault) -> String?
    /// The answer of a page of the scheme's own; nil for all other paths.
    func page(_ request: RawRequest) throws(StageFault) -> RawResponse?
    /// In whose name a request for the bank is, and what the bank reads; or why it goes no further.
    func caller(_ request: RawRequest) throws(StageFault) -> FieldCaller
}

extension FieldScheme {
    func kept(_ password: String) -> String? { nil }
    func page(_ request: RawRequest) -> RawResponse? { nil }
}

enum FieldCaller {
    case known(name: String, FieldParameters)
    case refused(RawResponse)
}
