import CountersignSeal
import CountersignWire

/// What apps in the field keep in UserDefaults, as plain values: the user's name, the switch "remember the password", and, in bad apps,
/// the password itself. For a ``RememberedCredentials`` of one's own, where they are kept elsewhere.
public struct DefaultsRemains: Sendable {
    /// The keys under which they are found.
    package static let userNameKey = "userNameKey"
    package static let switchKey = "isSavePwdKey"
    package static let passwordKey = "userPwdKey"

    /// The switch "remember the password".
    public enum Switch: String, Sendable {
        /// The password may be kept.
        case on
        /// It may not, and what is left of it is erased.
        case off
    }

    /// How the app spelled the password. Said by who wrote the app: most passwords could be either.
    public enum Spelling: Sendable {
        /// As it was typed.
        case plain
        /// As Base64 of what was typed.
        case base64
    }

    /// The user's name, which is the account that his password is moved to.
    public var userName: String?
    /// Nil where the switch was never touched.
    public var remembers: Switch?
    package var password: Secret?

    /// Nil for what is not there.
    public init(userName: String? = nil, remembers: Switch? = nil, password: String? = nil) {
        let bytes = password.map { Array($0.utf8) }
        self.init(userName: userName, remembers: remembers, password: bytes.map { Secret(copying: $0.span) })
    }

    package init(userName: String? = nil, remembers: Switch? = nil, password: Secret?) {
        self.userName = userName
        self.remembers = remembers
        self.password = password
    }

    /// What is to become of each, under `service`: the password as the account of its user, name and switch under names of their own. The
    /// password comes first, because without the user's name nobody knows whose it is.
    public func remains(spelled spelling: Spelling, service: String) throws(VaultProblem) -> [RememberedCredential] {
        var remains: [RememberedCredential] = []
        if let password {
            remains.append(
                RememberedCredential(key: DefaultsRemains.passwordKey, fate: fate(password, spelling, service)))
        }
        if let remembers {
            remains.append(
                try text(remembers.rawValue, DefaultsRemains.switchKey, "\(service).settings", "remember-password"))
        }
        if let userName, !userName.isEmpty {
            remains.append(try text(userName, DefaultsRemains.userNameKey, "\(service).settings", "user-name"))
        }
        return remains
    }

    private func fate(_ password: Secret, _ spelling: Spelling, _ service: String) -> RememberedCredential.Fate {
        // The user said that it should not be remembered.
        if remembers == .off { return .discard }
        guard let userName, let name = try? ItemName(service: service, account: userName) else {
            return .leave("a password without the name of its user")
        }
        switch spelling {
        case .plain: return .move(.text(password), to: name)
        case .base64:
            guard let decoded = DefaultsRemains.decode(password) else { return .leave("no Base64") }
            return .move(.text(decoded), to: name)
        }
    }

    private func text(
        _ text: String, _ key: String, _ service: String, _ account: String
    ) throws(VaultProblem) -> RememberedCredential {
        let name = try ItemName(service: service, account: account)
        return RememberedCredential(key: key, fate: .move(.text(Secret(copying: Array(text.utf8).span)), to: name))
    }

    private static func decode(_ text: Secret) -> Secret? {
        text.withExposedBytes { text in Base64.decode(text, .standard) }.map { Secret(copying: $0.span) }
    }
}
