import CountersignAuthority
import CountersignSeal
import CountersignWire

/// What administrators' programs show to be let in: `Authorization: Bearer …` (RFC 6750 §2.1). Kept in a file of mode
/// 0600 that the first start makes.
struct AdminToken: Sendable {
    private static let leastBytes = 16
    private let secret: Secret

    init(at path: String) throws(Fault) {
        if try KeyFile.read(path) == nil {
            let text = Array(Base64.encode(SystemRandom().bytes(32).span, .url).utf8)
            try KeyFile.make(path, Secret(copying: text.span))
        }
        guard let secret = try KeyFile.read(path), secret.count >= AdminToken.leastBytes else {
            throw Fault(.failed, "\(path): expected a token of at least \(AdminToken.leastBytes) bytes")
        }
        self.secret = secret
    }

    /// Whether the request shows it, once.
    func isShown(by request: Request) -> Bool {
        guard let field = request.value(of: "authorization") else { return false }
        let text = request.head.span.extracting(field.range)
        guard text.count > 7, text.extracting(0..<7).matchesWithoutCase("bearer ") else { return false }
        return secret.withExposedBytes { ConstantTime.equals($0, text.extracting(7..<text.count)) } == .equal
    }
}
