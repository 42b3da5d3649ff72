import CountersignSchemes
import CountersignWire

/// Where old clients sign in and renew their tokens. Source: docs/protocol.md, "The login ladder".
enum LegacyPath: Sendable, Equatable {
    case login(Rung.Door)
    case token

    /// What a target is: to us, and to a backend that has these scripts too.
    enum Reading: Equatable {
        case called(LegacyPath)
        /// Some backend would run this script, and we would not: spelled otherwise, or called by another method.
        case meant(Script)
    }

    /// What the backend has of the same name.
    enum Script: String, CaseIterable {
        case login = "login.php"
        case minute = "loginhmac.php"
        case token = "token.php"
    }

    /// Nil for what is none of these, however it is read.
    static func reading(of request: borrowing Request) -> Reading? {
        let path = request.head.span.extracting(request.path.range)
        guard LoosePath.isWorthReading(path) else { return nil }
        if let called = all.first(where: { $0.matches(request) }) { return .called(called) }
        // Behind the script may be more, which it is told as its PATH_INFO.
        let loose = LoosePath(path)
        guard loose.count >= 2, loose[0].elementsEqual("login".utf8) else { return nil }
        return Script.allCases.first { loose[1].elementsEqual($0.rawValue.utf8) }.map { .meant($0) }
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

extension LegacyPath.Reading {
    /// Whether it is about tokens, which are the backend's own where the policy says so.
    var isOfTokens: Bool { self == .called(.token) || self == .meant(.token) }
}

extension Request {
    fileprivate borrowing func `is`(_ method: StaticString, _ path: StaticString) -> Bool {
        matches(self.path, path) && matches(self.method, method)
    }
}
