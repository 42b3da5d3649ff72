import CountersignWire

/// What administrators' programs show: `Authorization: Bearer …`. Source: RFC 6750 §2.1.
struct AdminToken: Sendable {
    private let token: SharedToken

    init(at path: String) throws(Fault) { token = try SharedToken(at: path) }

    /// Whether the request shows it, once.
    func isShown(by request: Request) -> Bool {
        guard let field = request.value(of: "authorization") else { return false }
        let text = request.head.span.extracting(field.range)
        guard text.count > 7, text.extracting(0..<7).matchesWithoutCase("bearer ") else { return false }
        return token.isEqual(to: text.extracting(7..<text.count))
    }
}
