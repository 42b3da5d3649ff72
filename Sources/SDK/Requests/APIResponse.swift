import CountersignTransport

/// The head of an answer, and how much may be believed of it.
public struct APIResponse: Sendable, Hashable {
    /// Whose word an answer is.
    public enum Signer: Sendable, Hashable {
        /// The authority's, signed with the session's key for this very request.
        case session
        /// The authority's, signed with its own key for this very request.
        case authority
        /// Nobody's that can be told: a backend's answers pass through unsigned, and only TLS speaks for them.
        case nobody
    }

    /// 200 to 599.
    public let status: Int
    /// As they came, in their order.
    public let fields: [HeaderField]
    /// What is known of its body's length, in bytes: told beforehand, or counted.
    public let length: TransferProgress.Total
    /// Whose word it is.
    public let signer: Signer

    /// From its parts: for interceptors that answer themselves, and for tests.
    public init(
        status: Int, fields: [HeaderField] = [], length: TransferProgress.Total = .unknown, signer: Signer = .nobody
    ) {
        self.status = status
        self.fields = fields
        self.length = length
        self.signer = signer
    }

    /// Whether the authority is known to have given this answer, now and to this request.
    public var isGenuine: Bool { signer != .nobody }

    /// Whether it was a success: 200 to 299. A status of 400 and above is the backend's own; what the authority refuses is
    /// thrown as a ``CountersignError``.
    public var isSuccess: Bool { (200...299).contains(status) }

    /// The first field of that name, compared without case, where its value is UTF-8.
    public func value(of name: String) -> String? { fields.text(of: name) }
}
