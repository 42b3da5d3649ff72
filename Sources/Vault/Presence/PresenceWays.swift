import CountersignSeal

/// A reader of fingerprints.
package protocol FingerprintReader: Sendable {
    /// Waits for a finger, `patience` at most. Blocks its thread.
    func verify(within patience: Duration) -> FingerprintVerdict
}

package enum FingerprintVerdict: Sendable, Equatable {
    case match
    /// A finger, and not an enrolled one.
    case noMatch
    /// No reader, no enrolled finger, no answer; for people.
    case unavailable(String)
}

/// Who checks that a person knows the password of his account on this machine.
package protocol PasswordCheck: Sendable {
    /// `ask` is called when the password is needed, and gives nil where the person gives up. Blocks its thread.
    func verify(_ ask: @escaping @Sendable () -> Secret?) -> PasswordVerdict
}

package enum PasswordVerdict: Sendable {
    /// With what was typed, since that opens the key.
    case accepted(Secret)
    case refused(String)
    case givenUp
    /// Nothing can be checked here, or no longer: too many attempts, an account that has ended.
    case unavailable(String)
}
