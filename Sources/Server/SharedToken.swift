import CountersignAuthority
import CountersignSeal
import CountersignWire

/// A secret that other programs of the same operator present, kept in a file of mode 0600 that the first
/// start makes.
struct SharedToken: Sendable {
    private static let leastBytes = 16
    private let secret: Secret

    init(at path: String) throws(OperationalError) {
        if try KeyFile.read(path) == nil {
            let text = Array(Base64.encode(SystemRandom().bytes(32).span, as: .url).utf8)
            try KeyFile.make(at: path, holding: Secret(copying: text.span))
        }
        guard let secret = try KeyFile.read(path), secret.count >= SharedToken.leastBytes else {
            throw OperationalError(
                .failed, message: "\(path): expected a token of at least \(SharedToken.leastBytes) bytes")
        }
        self.secret = secret
    }

    func isEqual(to text: Span<UInt8>) -> Bool {
        secret.withExposedBytes { ConstantTime.equals($0, text) } == .equal
    }
}

/// The token of administrators' programs: `Authorization: Bearer …`. Source: RFC 6750 §2.1.
struct AdminToken: Sendable {
    private let token: SharedToken

    init(at path: String) throws(OperationalError) { token = try SharedToken(at: path) }

    /// Whether the request presents it, exactly once.
    func isPresented(by request: Request) -> Bool {
        guard let field = request.value(of: "authorization") else { return false }
        let text = request.head.span.extracting(field.range)
        guard text.count > 7, text.extracting(0..<7).matchesWithoutCase("bearer ") else { return false }
        return token.isEqual(to: text.extracting(7..<text.count))
    }
}
