import CountersignSeal
import CountersignWire

/// What apps in the field keep in UserDefaults, as plain values: the user's name, the switch "remember the password", and, in bad apps,
/// the password itself.
package struct DefaultsRemains: Sendable {
    package static let userNameKey = "userNameKey"
    package static let switchKey = "isSavePwdKey"
    package static let passwordKey = "userPwdKey"

    package enum Switch: String, Sendable { case on, off }

    /// How the app spelled the password. Said by who wrote the app: most passwords could be either.
    package enum Spelling: Sendable { case plain, base64 }

    package var userName: String?
    package var remembers: Switch?
    package var password: Secret?

    package init(userName: String? = nil, remembers: Switch? = nil, password: Secret? = nil) {
        self.userName = userName
        self.remembers = remembers
        self.password = password
    }

    /// What is to become of each, under `service`: the password as the account of its user, name and switch under names of their own. The
    /// password comes first, because without the user's name nobody knows whose it is.
    package func remains(spelled spelling: Spelling, service: String) throws(VaultProblem) -> [Remain] {
        var remains: [Remain] = []
        if let password {
            remains.append(Remain(key: DefaultsRemains.passwordKey, fate: fate(password, spelling, service)))
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

    private func fate(_ password: Secret, _ spelling: Spelling, _ service: String) -> Remain.Fate {
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
    ) throws(VaultProblem) -> Remain {
        let name = try ItemName(service: service, account: account)
        return Remain(key: key, fate: .move(.text(Secret(copying: Array(text.utf8).span)), to: name))
    }

    private static func decode(_ text: Secret) -> Secret? {
        text.withExposedBytes { text in Base64.decode(text, .standard) }.map { Secret(copying: $0.span) }
    }
}
