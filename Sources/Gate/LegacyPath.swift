/// Where an app's old clients call the authority outside its prefix, as policy `legacy-paths` has it. Source:
/// docs/protocol.md, "The login ladder".
extension Policy {
    /// What is done at such a path.
    package enum LegacyDoor: String, Sendable, CaseIterable {
        case login, logout, token
        case signUp = "signup"
        case password
    }

    /// One path: a door of that kind stands at these bytes, and nowhere else.
    package struct LegacyPath: Sendable, Equatable {
        package let door: LegacyDoor
        /// Begins with `/`; visible ASCII with one reading (`LoosePath`).
        package let path: [UInt8]

        package init(_ door: LegacyDoor, at path: [UInt8]) {
            self.door = door
            self.path = path
        }
    }

    /// What an old client's parameters say, and what an answer's members do.
    package enum LegacyName: String, Sendable, CaseIterable {
        case account, password
        case newPassword = "new-password"
        case token
        case loginToken = "login-token"
        case user

        /// As clients of old have it.
        package var usual: String {
            switch self {
            case .account: "username"
            case .password: "password"
            case .newPassword: "newPassword"
            case .token: "token"
            case .loginToken: "loginToken"
            case .user: "userId"
            }
        }
    }

    /// What the app's old clients call it.
    package func parameter(_ name: LegacyName) -> String { legacyNames[name] ?? name.usual }
}
