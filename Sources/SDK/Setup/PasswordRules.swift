/// What a new password must be: for a sign-up, a change and a reset. The device checks it, because the
/// authority never sees the password. Logins check nothing.
public struct PasswordRules: Sendable {
    /// The fewest characters, each code point of Unicode as one. The authority may demand more (policy
    /// `password-min`). Source: NIST SP 800-63B §3.1.1.2.
    public var minimumLength = 8
    /// Whether the password is known from a breach, by a list of the app's own or a service's; nil for no
    /// such check. The password must not leave the device: send a service only the first digits of its hash.
    public var isBreached: (@Sendable (_ password: String) async -> Bool)?

    /// At least eight characters.
    public init() {}

    static func tooShort(_ minimum: Int) -> String { "expected at least \(minimum) characters" }

    func check(_ password: String) async throws(CountersignError) {
        guard password.unicodeScalars.count >= minimumLength else {
            throw .unusablePassword(PasswordRules.tooShort(minimumLength))
        }
        if let isBreached, await isBreached(password) {
            throw .unusablePassword("it is known from a breach; expected another")
        }
    }
}
