import CountersignSchemes
import CountersignSeal

/// Everything that a legacy client keeps, as one item of the vault: it changes together or not at all.
package struct LegacyKept: Sendable {
    package var session: LegacySession?
    package var remembered: RememberedSignIn?
    /// What a newer build keeps beside it.
    var others = StateParts()

    package init() {}

    var isEmpty: Bool { session == nil && remembered == nil }
}

/// Who is signed in, and by what.
package struct LegacySession: Sendable {
    /// As the user wrote it.
    package var account: String
    /// Over 0.
    package var userID: Int64
    /// Goes with every request; nil where the server gives out none.
    package var token: Secret?
    /// Gets new tokens, and does nothing else; nil where the server gives out none.
    package var loginToken: Secret?
    /// When the token runs out, in whole Unix seconds by the device's clock; nil where the server did not say.
    package var expires: Int64?

    package init(account: String, userID: Int64, token: Secret?, loginToken: Secret?, expires: Int64?) {
        self.account = account
        self.userID = userID
        self.token = token
        self.loginToken = loginToken
        self.expires = expires
    }

    /// Tells sessions, and the tokens of one, apart: by digest, so that none is compared byte by byte.
    var mark: Mark { Mark(userID: userID, token: token?.digest, loginToken: loginToken?.digest) }

    /// Whether it is the same user's, whatever the tokens.
    func isOf(_ other: LegacySession) -> Bool { userID == other.userID && account == other.account }

    struct Mark: Sendable, Equatable {
        var userID: Int64
        /// SHA-256.
        var token: [UInt8]?
        var loginToken: [UInt8]?
    }
}

/// What signs in again without the user, where the app asked for it by name. Not the password where the rung can do without: what a
/// server of the rung keeps is all that its client needs. Whoever has it can sign in all the same.
package struct RememberedSignIn: Sendable {
    package var account: String
    /// For the rung that it was made on, and for no other.
    package var rung: Rung
    /// ``LoginLadder/kept(_:on:_:)``'s value.
    package var value: Secret
}

extension Secret {
    fileprivate var digest: [UInt8] {
        let digest = withExposedBytes { SHA256.digest($0) }
        return digest.indices.map { digest[$0] }
    }
}

/// A tag is for ever: one that is dropped is not used again.
private enum Tag {
    static let (account, userID, token, loginToken, expires): (UInt8, UInt8, UInt8, UInt8, UInt8) = (10, 11, 12, 13, 14)
    static let (name, rung, value): (UInt8, UInt8, UInt8) = (20, 21, 22)
    static let known: Set<UInt8> = [account, userID, token, loginToken, expires, name, rung, value]
}

extension LegacyKept {
    /// Nil where it is not what ``vaultContents`` wrote: then it is unreadable, and by no means empty.
    package init?(_ contents: Secret) {
        guard let parts = StateParts(contents) else { return nil }
        others = parts.unknown(Tag.known, in: 0...255)
        if let account = parts.text(Tag.account) {
            guard let userID = parts.number(Tag.userID) else { return nil }
            session = LegacySession(
                account: account, userID: userID, token: parts[Tag.token], loginToken: parts[Tag.loginToken],
                expires: parts.number(Tag.expires))
        }
        if let name = parts.text(Tag.name) {
            guard let rung = parts.text(Tag.rung).flatMap(Rung.init), let value = parts[Tag.value] else { return nil }
            remembered = RememberedSignIn(account: name, rung: rung, value: value)
        }
    }

    var vaultContents: Secret {
        var parts = others
        parts.set(Tag.account, session?.account)
        parts.set(Tag.userID, session?.userID)
        parts[Tag.token] = session?.token
        parts[Tag.loginToken] = session?.loginToken
        parts.set(Tag.expires, session?.expires)
        parts.set(Tag.name, remembered?.account)
        parts.set(Tag.rung, remembered?.rung.rawValue)
        parts[Tag.value] = remembered?.value
        return parts.contents
    }
}
