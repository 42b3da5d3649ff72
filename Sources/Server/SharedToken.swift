import CountersignAuthority
import CountersignSeal
import CountersignWire

/// What other programs of the same operator show to be let in, kept in a file of mode 0600 that the first
/// start makes.
struct SharedToken: Sendable {
    private static let leastBytes = 16
    private let secret: Secret

    init(at path: String) throws(Fault) {
        if try KeyFile.read(path) == nil {
            let text = Array(Base64.encode(SystemRandom().bytes(32).span, .url).utf8)
            try KeyFile.make(path, Secret(copying: text.span))
        }
        guard let secret = try KeyFile.read(path), secret.count >= SharedToken.leastBytes else {
            throw Fault(.failed, "\(path): expected a token of at least \(SharedToken.leastBytes) bytes")
        }
        self.secret = secret
    }

    func isEqual(to text: Span<UInt8>) -> Bool {
        secret.withExposedBytes { ConstantTime.equals($0, text) } == .equal
    }
}
