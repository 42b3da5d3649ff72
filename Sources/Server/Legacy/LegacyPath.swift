import CountersignSchemes
import CountersignWire

/// Where old clients sign in and renew their tokens. Source: docs/protocol.md, "The login ladder".
enum LegacyPath: Sendable, Equatable {
    case login(Rung.Door)
    case token

    /// Nil for any other path, and for methods that these are not called by.
    init?(_ request: borrowing Request) {
        guard let path = LegacyPath.all.first(where: { $0.matches(request) }) else { return nil }
        self = path
    }

    private static let all: [LegacyPath] = [.login(.query), .login(.form), .login(.minute), .token]

    private func matches(_ request: borrowing Request) -> Bool {
        switch self {
        case .login(.query): request.is("GET", "/login/login.php")
        case .login(.form): request.is("POST", "/login/login.php")
        case .login(.minute): request.is("POST", "/login/loginhmac.php")
        case .token: request.is("POST", "/login/token.php")
        }
    }
}

extension Request {
    fileprivate borrowing func `is`(_ method: StaticString, _ path: StaticString) -> Bool {
        matches(self.path, path) && matches(self.method, method)
    }
}
