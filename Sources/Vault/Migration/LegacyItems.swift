import CountersignSeal
import CountersignWire

/// The plain values that legacy apps keep in UserDefaults: the user's name, the switch "remember the
/// password", and, in bad apps, the password itself. For a ``RememberedCredentialSource`` of the app's own,
/// if it keeps them elsewhere.
public struct LegacyDefaultsItems: Sendable {
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

    /// How the app encoded the password. The app's developer states it, because most passwords are valid in
    /// both forms.
    public enum PasswordEncoding: Sendable {
        /// As it was typed.
        case plain
        /// As Base64 of what was typed.
        case base64
    }

    /// The user's name: the account to which the password is moved.
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

    /// The action for each value, under `service`: the password as the account of its user; name and switch
    /// under names of their own. The password comes first: without the user's name its account is unknown.
    public func credentials(encodedAs spelling: PasswordEncoding, service: String) throws(VaultError)
        -> [RememberedCredential]
    {
        var remains: [RememberedCredential] = []
        if let password {
            remains.append(
                RememberedCredential(
                    key: LegacyDefaultsItems.passwordKey,
                    fate: fate(of: password, encoding: spelling, service: service)))
        }
        if let remembers {
            remains.append(
                try credential(
                    text: remembers.rawValue, key: LegacyDefaultsItems.switchKey,
                    service: "\(service).settings", account: "remember-password"))
        }
        if let userName, !userName.isEmpty {
            remains.append(
                try credential(
                    text: userName, key: LegacyDefaultsItems.userNameKey, service: "\(service).settings",
                    account: "user-name"))
        }
        return remains
    }

    private func fate(of password: Secret, encoding spelling: PasswordEncoding, service: String)
        -> RememberedCredential.Fate
    {
        // The user chose not to have the password remembered.
        if remembers == .off { return .discard }
        guard let userName, let name = try? ItemName(service: service, account: userName) else {
            return .leave("a password without the name of its user")
        }
        switch spelling {
        case .plain: return .move(.text(password), to: name)
        case .base64:
            guard let decoded = LegacyDefaultsItems.decode(password) else { return .leave("no Base64") }
            return .move(.text(decoded), to: name)
        }
    }

    private func credential(
        text: String, key: String, service: String, account: String
    ) throws(VaultError) -> RememberedCredential {
        let name = try ItemName(service: service, account: account)
        return RememberedCredential(
            key: key, fate: .move(.text(Secret(copying: Array(text.utf8).span)), to: name))
    }

    private static func decode(_ text: Secret) -> Secret? {
        text.withExposedBytes { text in Base64.decode(text, as: .standard) }.map { Secret(copying: $0.span) }
    }
}

/// Passwords that another library kept in the keychain, by service and account as SAMKeychain does, whose
/// place the vault takes.
package struct LegacyKeychainItems: RememberedCredentialSource {
    private let calls: any KeychainCalls
    private let service: String
    private let target: String

    /// `calls` must see the other library's items; `service` is where it kept them, and `target` where the
    /// vault does. They differ: the vault would else find an item that it has not written.
    package init(_ calls: any KeychainCalls, service: String, to target: String) throws(VaultError) {
        guard !service.utf8.elementsEqual(target.utf8) else {
            throw .badName("\(target): the old service itself")
        }
        self.calls = calls
        self.service = service
        self.target = target
    }

    package func read() -> VaultReadResult<[RememberedCredential]> {
        var remains: [RememberedCredential] = []
        let all = calls.list()
        do {
            try KeychainStatus.check(all.status, call: "list", absence: .isFine)
            for account in all.names.filter({ $0.service.utf8.elementsEqual(service.utf8) }).map(\.account)
                .sorted()
            {
                let name = try ItemName(service: service, account: account)
                guard let bytes = try KeychainStatus.readResult(calls.copy(name)).get() else { continue }
                let isText = bytes.withExposedBytes { span in
                    span.firstIllFormedUTF8 == nil
                }
                let target = try ItemName(service: target, account: account)
                remains.append(
                    RememberedCredential(
                        key: account, fate: .move(isText ? .text(bytes) : .bytes(bytes), to: target)))
            }
        } catch {
            return VaultReadResult(error)
        }
        return remains.isEmpty ? .absent : .value(remains)
    }

    package func erase(_ remembered: RememberedCredential) throws(VaultError) {
        let name = try ItemName(service: service, account: remembered.key)
        try KeychainStatus.check(calls.delete(name), call: "delete", absence: .isFine)
    }
}
