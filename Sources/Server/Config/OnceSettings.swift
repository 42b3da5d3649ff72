import CountersignAuthority

/// What is kept of requests with an `Idempotency-Key`.
public struct OnceSettings: Sendable, Equatable {
    /// Bytes of an answer's body, beyond which only its status is kept.
    package var answerBytes = 64 << 10
    package var bounds = IdempotencyBounds()

    /// The defaults.
    public init() {}
}

extension Setting {
    static let once: [Setting] = [
        number(
            "limit-kept-answer", \.once.answerBytes, in: 0...(1 << 20),
            "bytes of an answer to an Idempotency-Key that are kept for later copies"),
        number(
            "limit-kept-keys", \.once.bounds.all.keys, in: 100...1_000_000_000,
            "Idempotency-Keys of a day that are kept; a tenth for a release's callers without a session, half for all of them"
        ),
        number(
            "limit-kept-few-keys", \.once.bounds.fewKeys, in: 0...1_000_000,
            "keys up to which an account, or a network of callers without a session, has a reserve of an eighth"
        ),
        number(
            "limit-kept-bytes", \.once.bounds.all.bytes, in: (1 << 20)...(1 << 46),
            "bytes of their answers, shared in the same way"),
        number(
            "limit-kept-account-keys", \.once.bounds.account.keys, in: 1...1_000_000_000,
            "keys of one account's sessions"),
        number(
            "limit-kept-account-bytes", \.once.bounds.account.bytes, in: (64 << 10)...(1 << 46),
            "bytes of their answers"),
    ]
}
