import CountersignSchemes
import CountersignSeal
import CountersignVault

/// Everything that a legacy client stores, as one item of the vault: it changes together or not at all.
package struct LegacyPersistedState: Sendable {
    package var session: LegacySession?
    package var remembered: RememberedSignIn?
    /// The parts that a newer build stores beside these.
    var others = StateParts()

    package init() {}

    var isEmpty: Bool { session == nil && remembered == nil }
}

/// The signed-in account and its tokens.
package struct LegacySession: Sendable {
    /// As the user wrote it.
    package var account: String
    /// Over 0.
    package var userID: Int64
    /// Goes with every request; nil if the server issues none.
    package var token: Secret?
    /// Gets new tokens, and has no other use; nil if the server issues none.
    package var loginToken: Secret?
    /// When the token expires, in whole Unix seconds by the device's clock; nil if the server did not say.
    package var expires: Int64?

    package init(account: String, userID: Int64, token: Secret?, loginToken: Secret?, expires: Int64?) {
        self.account = account
        self.userID = userID
        self.token = token
        self.loginToken = loginToken
        self.expires = expires
    }

    /// The account, as the owner of a request.
    package var owner: SignedCalls.Owner { .legacyAccount(name: account, userID: userID) }

    /// Distinguishes sessions, and the tokens of one session, by digest, so that no token is compared byte by
    /// byte.
    var mark: Mark { Mark(userID: userID, token: token?.digest, loginToken: loginToken?.digest) }

    /// Whether it belongs to the same user, whatever the tokens.
    func isOf(_ other: LegacySession) -> Bool { userID == other.userID && account == other.account }

    struct Mark: Sendable, Equatable {
        var userID: Int64
        /// SHA-256.
        var token: [UInt8]?
        var loginToken: [UInt8]?
    }
}

/// The credentials that sign in again without the user, if the app asked for it by name. Not the password if
/// the rung works without it: a client needs only the value that a server of the rung stores. An attacker who
/// has it can sign in all the same.
package struct RememberedSignIn: Sendable {
    package var account: String
    /// The rung that it was made for; it works on no other.
    package var rung: Rung
    /// ``LoginLadder/storedValue(of:on:settings:)``'s value.
    package var value: Secret
}

extension Secret {
    fileprivate var digest: [UInt8] {
        let digest = withExposedBytes { SHA256.digest($0) }
        return digest.indices.map { digest[$0] }
    }
}

/// Tags are permanent: a tag that is no longer used is not assigned again.
private enum Tag {
    static let (account, userID, token, loginToken, expires): (UInt8, UInt8, UInt8, UInt8, UInt8) = (
        10, 11, 12, 13, 14
    )
    static let (name, rung, value): (UInt8, UInt8, UInt8) = (20, 21, 22)
    static let known: Set<UInt8> = [account, userID, token, loginToken, expires, name, rung, value]
}

extension LegacyPersistedState {
    /// Nil if ``vaultContents`` did not write it: then it is unreadable, not empty.
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
            guard let rung = parts.text(Tag.rung).flatMap(Rung.init), let value = parts[Tag.value] else {
                return nil
            }
            remembered = RememberedSignIn(account: name, rung: rung, value: value)
        }
    }

    var vaultContents: Secret {
        var parts = others
        parts.set(Tag.account, to: session?.account)
        parts.set(Tag.userID, session?.userID)
        parts[Tag.token] = session?.token
        parts[Tag.loginToken] = session?.loginToken
        parts.set(Tag.expires, session?.expires)
        parts.set(Tag.name, to: remembered?.account)
        parts.set(Tag.rung, to: remembered?.rung.rawValue)
        parts[Tag.value] = remembered?.value
        return parts.contents
    }
}

/// Where a legacy client's state is stored. A writer names the version that it read, so that a late write is
/// detected.
package struct LegacyStore: Sendable {
    private let vault: Vault
    private let name: ItemName

    package init(_ vault: Vault, item name: ItemName) {
        self.vault = vault
        self.name = name
    }

    struct Found: Sendable {
        var kept: LegacyPersistedState
        /// Nil if nothing is stored.
        var version: ItemVersion?
        var form = Form.plain

        enum Form: Sendable, Equatable {
            case plain
            /// Under the key that it was opened with.
            case sealed
            /// Under the key of that name, which is not here: the contents are unknown.
            case locked(String)
        }

        var expectation: Vault.Expectation { version.map { .version($0) } ?? .absent }
    }

    /// Waits a little longer than an exchange under the lease takes at most.
    func lease() async throws(ClientOperationError) -> FileLock {
        do {
            return try await vault.lease(within: .seconds(120))
        } catch {
            throw ClientOperationError(error)
        }
    }

    func read(opening key: LegacySealKey? = nil) throws(ClientOperationError) -> Found {
        do throws(VaultError) {
            guard let item = try vault.read(name).get() else { return Found(kept: LegacyPersistedState()) }
            var (contents, form) = (item.contents.secret, Found.Form.plain)
            if let sealed = try SealedLegacySession(contents) {
                guard let opened = try sealed.opened(by: key, as: name) else {
                    return Found(
                        kept: LegacyPersistedState(), version: item.version, form: .locked(sealed.keyName))
                }
                (contents, form) = (opened, .sealed)
            }
            guard let kept = LegacyPersistedState(contents) else {
                throw .failed("\(name): holds what this build cannot read")
            }
            return Found(kept: kept, version: item.version, form: form)
        } catch {
            throw ClientOperationError(error)
        }
    }

    /// Durable once it returns. Returns nil, and does nothing, if another writer came first. Removes the item
    /// if the state is empty. Seals the state if a key is given.
    func write(
        _ kept: LegacyPersistedState, under key: LegacySealKey? = nil,
        expecting expectation: Vault.Expectation
    ) throws(ClientOperationError) -> Found? {
        do throws(VaultError) {
            guard !kept.isEmpty else {
                try vault.erase(name, expecting: expectation)
                return Found(kept: kept)
            }
            var contents = kept.vaultContents
            if let key { contents = try SealedLegacySession.sealed(contents, under: key, as: name) }
            let version = try vault.write(.bytes(contents), to: name, expecting: expectation)
            return Found(kept: kept, version: version, form: key == nil ? .plain : .sealed)
        } catch {
            if error == .changed { return nil }
            throw ClientOperationError(error)
        }
    }
}
