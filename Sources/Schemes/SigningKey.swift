import CountersignSeal

/// A shared secret made ready for use: the keyed hash state is computed once, and copied for each message.
package final class SigningKey: Sendable {
    package let secret: Secret

    package init(_ secret: Secret) { self.secret = secret }
}
