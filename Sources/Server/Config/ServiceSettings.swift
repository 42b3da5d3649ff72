import CountersignAuthority
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// How often passwords may be guessed, and how many resources logins may use.
public struct LoginSettings: Sendable, Equatable {
    /// Per account, for all unknown devices together.
    package var account = LoginLimits.Rules().account
    /// Per address, over all accounts.
    package var address = LoginLimits.Rules().address
    /// Per account and device, for devices that have signed in before.
    package var device = LoginLimits.Rules().device
    /// Per account, for unknown devices that have solved a challenge.
    package var solved = LoginLimits.Rules().solved
    /// Per address: proofs of devices that the account does not know, and finishes of registrations that
    /// fail.
    package var work = LoginLimits.Rules().work
    /// Logins that are started and not finished; less than 2 KiB each.
    package var pending = 4096
    /// Callers that may wait for an OPAQUE computation.
    package var queue = 1024
    /// Passwords that are hashed at the same time; 19 MiB each. Nil for one for every two cores.
    package var hashes: Int?
    /// Callers that may wait for password hashing.
    package var hashQueue = 32

    /// The defaults.
    public init() {}

    var rules: LoginLimits.Rules {
        var rules = LoginLimits.Rules()
        rules.account = account
        rules.address = address
        rules.device = device
        rules.work = work
        rules.solved = solved
        return rules
    }
}

extension Setting {
    static let logins: [Setting] = [
        allowance(
            "login-account", at: \.logins.account,
            meaning: "guesses at an account's password, by all strangers together"),
        allowance(
            "login-address", at: \.logins.address,
            meaning:
                "guesses and sign-ups from an address (of IPv6: 64 bits; from 56 bits 1.5 times as many "
                + "at once and 4 times as fast, from 48 twice and 16 times)"),
        allowance(
            "login-device", at: \.logins.device,
            meaning: "guesses from a device that the account has signed in on before"),
        allowance(
            "login-solved", at: \.logins.solved,
            meaning: "guesses at an account's password by strangers that solved a challenge for it"),
        allowance(
            "login-work", at: \.logins.work, scope: .node,
            meaning:
                "proofs from an address of devices that the account does not know, and as many finishes of "
                + "registrations that fail"
        ),
        number(
            "login-pending", at: \.logins.pending, in: 16...1_000_000, unit: .count, effect: .onRestart,
            scope: .deployment, meaning: "logins begun and not finished, 2 KiB each"),
        number(
            "login-queue", at: \.logins.queue, in: 1...1_000_000, unit: .count, effect: .onRestart,
            meaning: "callers that wait for their login to be computed"),
        Setting(
            "login-hashes", placeholder: "N",
            meaning: "passwords hashed at once, 19 MiB each (default: one for every two cores)",
            expected: "a whole number from 1 to 256",
            kind: .number(.count), effect: .onRestart,
            set: { configuration, text in
                wholeNumber(text, in: 1...256).map { configuration.logins.hashes = $0 }
            },
            show: { $0.logins.hashes.map { .integer(Int64($0)) } ?? .null }),
        number(
            "login-hash-queue", at: \.logins.hashQueue, in: 0...100_000, unit: .count, effect: .onRestart,
            meaning: "callers that wait for a hash"),
    ]

    /// `10/60s`: a burst of 10, and one more every 60 seconds.
    private static func allowance(
        _ name: String, at path: any WritableKeyPath<Configuration, RateLimit> & Sendable,
        scope: Scope = .deployment, meaning: String
    ) -> Setting {
        Setting(
            name, placeholder: "N/TIME", meaning: "\(meaning): N at once, and one more each TIME",
            expected: "attempts at once (1 to 1000000) and seconds for one more (1 to 86400), such as 10/60s",
            effect: .onRestart, scope: scope,
            set: { configuration, text in
                let parts = text.split(separator: "/", omittingEmptySubsequences: false)
                guard parts.count == 2, parts[1].hasSuffix("s"),
                    let burst = wholeNumber(String(parts[0]), in: 1...1_000_000),
                    let seconds = wholeNumber(String(parts[1].dropLast()), in: 1...86_400)
                else { return nil }
                return configuration[keyPath: path] = RateLimit(
                    burst: burst, refillInterval: .seconds(seconds))
            },
            show: { .string("\($0[keyPath: path].burst)/\($0[keyPath: path].interval / 1000)s") })
    }
}

/// What is kept of requests with an `Idempotency-Key`.
public struct IdempotencySettings: Sendable, Equatable {
    /// Bytes of an answer's body; of a longer one only the status is kept.
    package var answerBytes = 64 << 10
    package var bounds = IdempotencyBounds()

    /// The response field that states it.
    var retention: ServerResponse.Field {
        ServerResponse.Field(KeyRetention.fieldName, value: String(bounds.floor))
    }

    /// The defaults.
    public init() {}
}

extension Setting {
    static let idempotency: [Setting] = [
        number(
            "limit-kept-answer", at: \.idempotency.answerBytes, in: 0...(1 << 20), unit: .bytes,
            effect: .onRestart, scope: .deployment,
            meaning: "bytes of an answer to an Idempotency-Key that are kept for later copies"),
        number(
            "limit-kept-keys", at: \.idempotency.bounds.all.keys, in: 100...1_000_000_000, unit: .count,
            effect: .onRestart, scope: .deployment,
            meaning:
                "Idempotency-Keys that are kept; if room is needed, finished ones are forgotten before their "
                + "day is over"
        ),
        number(
            "limit-kept-floor", at: \.idempotency.bounds.floor,
            in: KeyRetention.lowest...KeyRetention.highest, unit: .seconds,
            effect: .onRestart, scope: .deployment,
            meaning: "seconds for which a finished Idempotency-Key is kept in any case"),
        number(
            "limit-kept-few-keys", at: \.idempotency.bounds.fewKeys, in: 0...1_000_000, unit: .count,
            effect: .onRestart, scope: .deployment,
            meaning:
                "an account, or a network of callers without a session, with more keys counts as one of the "
                + "largest, whose keys are forgotten first"
        ),
        number(
            "limit-kept-bytes", at: \.idempotency.bounds.all.bytes, in: (1 << 20)...(1 << 46), unit: .bytes,
            effect: .onRestart, scope: .deployment,
            meaning: "bytes of their answers; beyond, keys are still accepted, and answers are not kept"),
        number(
            "limit-kept-refusal-bytes", at: \.refusalBytes, in: 0...(1 << 40), unit: .bytes,
            effect: .onRestart,
            meaning: "bytes on the disk for refused requests, which the console shows; half of them are for "
                + "callers with proof; 0 keeps only the latest, in memory"),
        number(
            "limit-kept-account-keys", at: \.idempotency.bounds.account.keys, in: 1...1_000_000_000,
            unit: .count, effect: .onRestart, scope: .deployment,
            meaning: "keys of one account's sessions"),
        number(
            "limit-kept-account-bytes", at: \.idempotency.bounds.account.bytes, in: (64 << 10)...(1 << 46),
            unit: .bytes, effect: .onRestart, scope: .deployment,
            meaning: "bytes of their answers"),
    ]
}

extension Setting {
    /// How many log lines are written about callers that have proved nothing.
    static let logSampling: [Setting] = [
        number(
            "log-sample", at: \.logSampling.burst, in: 0...1_000_000, unit: .count, effect: .onReload,
            meaning: "lines of each cause and address in ten seconds, for callers that have proved nothing; "
                + "the rest is counted. 0: every line"
        ),
        number(
            "log-sample-seconds", at: \.logSampling.window, in: 1...3600, unit: .seconds, effect: .onReload,
            meaning: "seconds for which they are sampled and counted, in place of ten"),
        number(
            "log-sample-lines", at: \.logSampling.mostLines, in: 1...10_000_000, unit: .count,
            effect: .onReload,
            meaning: "such lines of all causes and addresses together"),
        number(
            "log-verified-lines", at: \.logSampling.verifiedLines, in: 0...10_000_000, unit: .count,
            effect: .onReload,
            meaning:
                "lines of verified callers in that time; the rest is sampled and counted. 0: every line"),
    ]
}
