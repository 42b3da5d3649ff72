import CountersignAuthority
import CountersignWire

/// How often passwords may be guessed, and how much a storm of logins may take.
public struct LoginSettings: Sendable, Equatable {
    /// By account, for all strangers together.
    package var account = LoginLimits.Rules().account
    /// By address, over all accounts.
    package var address = LoginLimits.Rules().address
    /// By account and device, for devices that have signed in before.
    package var device = LoginLimits.Rules().device
    /// By address: devices' proofs, and ends of registrations, that came to nothing.
    package var work = LoginLimits.Rules().work
    /// Logins that are begun and not finished; less than 2 KiB each.
    package var pending = 4096
    /// Callers that may wait for OPAQUE to be computed.
    package var queue = 1024
    /// Passwords that are hashed at once; 19 MiB each. Nil for one for every two cores.
    package var hashes: Int?
    /// Callers that may wait for it besides.
    package var hashQueue = 32

    /// The defaults.
    public init() {}

    var rules: LoginLimits.Rules {
        var rules = LoginLimits.Rules()
        rules.account = account
        rules.address = address
        rules.device = device
        rules.work = work
        return rules
    }
}

extension Setting {
    static let logins: [Setting] = [
        allowance("login-account", \.logins.account, "guesses at an account's password, by all strangers together"),
        allowance("login-address", \.logins.address, "guesses and sign-ups from an address (of IPv6: 64 bits)"),
        allowance("login-device", \.logins.device, "guesses from a device that the account has signed in on before"),
        allowance(
            "login-work", \.logins.work,
            "devices' proofs from an address that do not hold, and as many ends of registrations that come to nothing"),
        number("login-pending", \.logins.pending, in: 16...1_000_000, "logins begun and not finished, 2 KiB each"),
        number("login-queue", \.logins.queue, in: 1...1_000_000, "callers that wait for their login to be computed"),
        Setting(
            "login-hashes", "N", "passwords hashed at once, 19 MiB each (default: one for every two cores)",
            expected: "a whole number from 1 to 256",
            set: { configuration, text in wholeNumber(text, in: 1...256).map { configuration.logins.hashes = $0 } },
            show: { $0.logins.hashes.map { .integer(Int64($0)) } ?? .null }),
        number("login-hash-queue", \.logins.hashQueue, in: 0...100_000, "callers that wait for a hash"),
    ]

    /// `10/60s`: so many at once, and one more each so often.
    private static func allowance(
        _ name: String, _ path: any WritableKeyPath<Configuration, Allowance> & Sendable, _ meaning: String
    ) -> Setting {
        Setting(
            name, "N/TIME", "\(meaning): N at once, and one more each TIME",
            expected: "attempts at once (1 to 1000000) and seconds for one more (1 to 86400), such as 10/60s",
            set: { configuration, text in
                let parts = text.split(separator: "/", omittingEmptySubsequences: false)
                guard parts.count == 2, parts[1].hasSuffix("s"),
                    let burst = wholeNumber(String(parts[0]), in: 1...1_000_000),
                    let seconds = wholeNumber(String(parts[1].dropLast()), in: 1...86_400)
                else { return nil }
                return configuration[keyPath: path] = Allowance(burst: burst, oneEach: .seconds(seconds))
            },
            show: { .string("\($0[keyPath: path].burst)/\($0[keyPath: path].interval / 1000)s") })
    }
}
