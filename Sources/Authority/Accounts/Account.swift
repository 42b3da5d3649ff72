import CountersignGate
import CountersignWire

/// A person's identity in one app.
package struct Account: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        case active
        case locked
        /// The account was removed. Its name stays reserved, because the backend would take a new
        /// account of that name for the old one.
        case removed
    }

    /// The row's number; it is never reused for another account.
    package var number: Int64
    package var app: AppName
    package var name: AccountName
    /// The user id that the backend gave; nil if it gave none.
    package var userID: Int64?
    /// Whole Unix seconds.
    package var created: Int64
    package var state = State.active
    /// The OPAQUE registration; nil for an account that has not registered yet.
    package var registration: StoredRegistration?
    /// The credential of the account's rung of the login ladder. An account with a `registration` has none.
    package var legacy: LegacyCredential?
    /// The one-time codes that replace a forgotten password, oldest first, including expired ones that still
    /// count for ``CodePace``.
    package var resets: [StoredReset] = []
    /// How the audit log names the account; nil once the account was erased.
    package var pseudonym: AccountPseudonym?
    /// Whether the account was erased: its data are gone, and its name is a placeholder.
    package var isErased: Bool { pseudonym == nil }

    package init(number: Int64, app: AppName, name: AccountName, userID: Int64? = nil, created: Int64) {
        self.number = number
        self.app = app
        self.name = name
        self.userID = userID
        self.created = created
    }

    /// Whether the account still has the credential that a login proved: the name of its registration's
    /// credential, or the sealed value of its rung. Nil stands for any rung.
    package func isProved(by credential: [UInt8]?) -> Bool {
        guard let credential else { return registration == nil && legacy != nil }
        return registration?.credential == credential || legacy?.sealed == credential
    }
}

/// An OPAQUE registration as a store keeps it.
package struct StoredRegistration: Sendable, Equatable {
    /// Bytes of a credential's name.
    package static let credentialCount = 16

    /// Names the OPRF key: random, and new with each registration, so that a client that starts another
    /// registration under a name learns nothing about the password of the existing one.
    package var credential: [UInt8]
    /// OPAQUE's record, sealed under the master key.
    package var sealedRecord: [UInt8]

    package init(credential: [UInt8], sealedRecord: [UInt8]) {
        self.credential = credential
        self.sealedRecord = sealedRecord
    }
}

/// A one-time code that replaces a forgotten password, as a store keeps it.
package struct StoredReset: Sendable, Equatable {
    private static let hashCount = 32
    private static let count = hashCount + 16

    /// SHA-256 of the code.
    package var codeHash: [UInt8]
    /// Whole Unix seconds.
    package var made: Int64
    /// Whole Unix seconds from which the code is refused.
    package var until: Int64

    package init(codeHash: [UInt8], made: Int64, until: Int64) {
        (self.codeHash, self.made, self.until) = (codeHash, made, until)
    }

    fileprivate func entry(at now: Int64) -> CodePace.Entry {
        CodePace.Entry(made: made, end: now < until ? until : nil)
    }

    /// Encodes each code as `hash ‖ made (8 bytes) ‖ until (8 bytes)`.
    package static func encode(_ resets: [StoredReset]) -> [UInt8] {
        resets.flatMap { $0.codeHash + $0.made.bigEndianBytes + $0.until.bigEndianBytes }
    }

    /// Decodes what ``encode(_:)`` writes; nil for anything else.
    package static func decode(_ bytes: [UInt8]) -> [StoredReset]? {
        guard bytes.count.isMultiple(of: count) else { return nil }
        return stride(from: 0, to: bytes.count, by: count).map { start in
            let numbers = start + hashCount
            return StoredReset(
                codeHash: Array(bytes[start..<numbers]),
                made: Int64(bigEndianBytes: bytes[numbers..<numbers + 8]),
                until: Int64(bigEndianBytes: bytes[numbers + 8..<start + count]))
        }
    }
}

extension Account {
    /// The codes after `reset` is added, without those that no longer count; or the reason why no code can be
    /// made now.
    package func resets(adding reset: StoredReset, at now: Int64) -> Result<[StoredReset], CodePace.Refusal> {
        if let refusal = CodePace.refusal(after: resets.map { $0.entry(at: now) }, at: now) {
            return .failure(refusal)
        }
        let kept = resets.filter { now < $0.until || (now - $0.made < CodePace.period && $0.made <= now) }
        return .success(kept.suffix(CodePace.mostLive - 1) + [reset])
    }
}

extension AccountIdentity {
    /// Writes all of the name but visible ASCII, and `%`, as %XX.
    package init(_ account: Account) {
        let bytes = account.name.bytes
        var text = ByteBuffer(capacity: bytes.count * 3)
        for byte in bytes {
            if byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "%") {
                text.append(byte)
            } else {
                PercentEncoding.escape(byte, into: &text)
            }
        }
        self.init(number: account.number, userID: account.userID, escapedName: text.span.text)
    }
}
