import CountersignOpaque
import CountersignSeal
import CountersignWire

/// The bytes that both sides hash, sign or authenticate: a label, and parts that are each preceded by their
/// length, so that different lists of parts give different bytes.
struct Transcript {
    private(set) var bytes: [UInt8]

    init(_ label: String) { bytes = Array("countersign/1 \(label)".utf8) + [0] }

    /// Adds a part: its length in 8 bytes, big-endian, and its bytes.
    mutating func add(_ part: [UInt8]) {
        add(UInt64(part.count))
        bytes += part
    }

    mutating func add(_ part: String) { add(Array(part.utf8)) }

    /// Adds a number in 8 bytes, big-endian.
    mutating func add(_ number: UInt64) {
        bytes += (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
    }
}

/// The content of a refresh. The device's signature and a MAC under the session's request key authenticate
/// these bytes; the release signs the request that carries them. Source: docs/protocol.md, "Refresh".
package struct RefreshTranscript: Sendable {
    /// The length of an attempt to leave an epoch, in bytes. An attempt is random; the client stores it
    /// before it sends it, and repeats it until it is answered.
    package static let attemptCount = 16

    package var app: String
    /// The release's key id.
    package var release: String
    /// The session, and the epoch to leave.
    package var token: SessionToken
    package var attempt: [UInt8]
    /// Whole Unix seconds.
    package var time: Int64
    /// The transcript's number among all that the device signed for this session, from 1.
    package var counter: Int64
    /// 16 random bytes, which make the transcript unlike every other one: two holders of one vault never sign
    /// the same.
    package var nonce: [UInt8]
    package var purpose: Purpose

    /// What the device asks for.
    package enum Purpose: String, Sendable, CaseIterable {
        case renew
        /// Asks the authority to end the session: the device learnt of a transcript or of an epoch that only
        /// another holder of its keys can have made.
        case reportReuse = "report-reuse"
    }

    package static let nonceCount = 16

    /// The highest counter that a device reaches. Larger numbers remain, so that no holder of a copied vault
    /// can leave the other holder without a counter that is larger than its own.
    package static let highestCounter: Int64 = 1 << 52

    package init(
        app: String, release: String, token: SessionToken, attempt: [UInt8], time: Int64,
        counter: Int64, nonce: [UInt8], purpose: Purpose = .renew
    ) {
        self.app = app
        self.release = release
        self.token = token
        self.attempt = attempt
        self.time = time
        self.counter = counter
        self.nonce = nonce
        self.purpose = purpose
    }

    package var bytes: [UInt8] {
        var transcript = Transcript("refresh-2")
        transcript.add(app)
        transcript.add(release)
        transcript.add(token.id.bytes)
        transcript.add(UInt64(token.epoch))
        transcript.add(attempt)
        transcript.add(UInt64(bitPattern: time))
        transcript.add(UInt64(bitPattern: counter))
        transcript.add(nonce)
        transcript.add(purpose.rawValue)
        return transcript.bytes
    }
}

/// A registration in transit to the authority: OPAQUE's record and, if it replaces an existing one, the
/// one-time code that permits it. A party that reads the code could use it first, so the code is encrypted
/// with the record: only the holder of the registration key can read them, and only for the account that
/// they were made for. Source: docs/protocol.md, "Sign-up".
package struct SealedRegistration: Sendable {
    /// OPAQUE's registration record, 192 bytes.
    package let record: Secret
    /// The code as the user typed it, in UTF-8; nil if there is none.
    package let resetCode: Secret?

    /// Bytes of a code, including any spacing.
    package static let longestCode = 64

    package init(record: Secret, resetCode: Secret? = nil) {
        self.record = record
        self.resetCode = resetCode
    }

    /// Parses the decrypted contents: the record, followed by the code. Nil if they are shorter than a
    /// record, or longer than both.
    package init?(_ contents: Secret) {
        let count = MessageKind.registrationRecord.count
        guard (count...count + SealedRegistration.longestCode).contains(contents.count) else { return nil }
        record = contents.part(0..<count)
        resetCode = contents.count == count ? nil : contents.part(count..<contents.count)
    }

    /// Encrypts the registration to `receiver`, an X25519 public key of 32 bytes. Nil if the key is
    /// invalid.
    package func sealed(to receiver: [UInt8], for purpose: [UInt8]) -> [UInt8]? {
        SealedBox.seal(Secret(joining: [record] + [resetCode].compactMap { $0 }), to: receiver, for: purpose)
    }

    /// `handle` is the handle from the answer to the start.
    package static func purpose(app: String, account: AccountName, handle: [UInt8]) -> [UInt8] {
        var transcript = Transcript("registration")
        transcript.add(app)
        transcript.add(account.bytes)
        transcript.add(handle)
        return transcript.bytes
    }
}
