/// An error of the caller: one stable code, one status, one line that helps. An error of the server is an
/// ``OperationalError``.
///
/// The public response has the code and its title. `detail` is exact; it goes to the log event, and to the
/// caller only if it reveals nothing (`malformed`, limits) or the app's policy says `debug`.
package struct Refusal: Error, Sendable, Equatable {
    package enum Code: String, Sendable, CaseIterable {
        case malformed
        case unsigned
        case unknownKey = "unknown-key"
        case badSignature = "bad-signature"
        case badTicket = "bad-ticket"
        case deviceUnsigned = "device-unsigned"
        case stale
        case replayed
        case bodyMismatch = "body-mismatch"
        case tokenExpired = "token-expired"
        case sessionEnded = "session-ended"
        case updateRequired = "update-required"
        case wrongCredentials = "wrong-credentials"
        case loginExpired = "login-expired"
        case tooManyAttempts = "too-many-attempts"
        case schemeNotAllowed = "scheme-not-allowed"
        case forbidden
        case decideNeedsBody = "decide-needs-body"
        case nameTaken = "name-taken"
        case tooLarge = "too-large"
        case timeout
        case upstreamFailed = "upstream-failed"
        case upstreamTimeout = "upstream-timeout"
        case unavailable
        case rateLimited = "rate-limited"
        case addressDenied = "address-denied"
        case maintenance
        case sessionRequired = "session-required"
    }

    package var code: Code
    /// For the log and, where harmless, the caller. Never a secret, never an expected MAC.
    package var detail: String
    /// `too-many-attempts`, `rate-limited`, `maintenance`, `unavailable`: seconds.
    package var retryAfter: Int?
    /// What few refusals have; nil if this one has none of it. A refusal is copied on its way to the response
    /// and the log.
    private var rare: RareParts?

    /// What an operator can change; for the log alone. Empty if there is nothing.
    package var remedy: String {
        get { rare?.values.remedy ?? "" }
        set { change { $0.remedy = newValue } }
    }
    /// `update-required`: where the new version is.
    package var link: String? {
        get { rare?.values.link }
        set { change { $0.link = newValue } }
    }
    /// For `session-ended`: how the session ended, if one was found.
    package var endedSession: EndedSession? {
        get { rare?.values.endedSession }
        set { change { $0.endedSession = newValue } }
    }
    /// `too-many-attempts`: work by which a caller may start this login all the same; nil for all else.
    package var work: WorkOffer? {
        get { rare?.values.work }
        set { change { $0.work = newValue } }
    }
    /// `unavailable`: the status with which the backend has answered this very request before; nil for all
    /// else.
    package var previousStatus: Int? {
        get { rare?.values.previousStatus }
        set { change { $0.previousStatus = newValue } }
    }
    /// The time, in whole Unix seconds, whose arrival alone causes the refusal; nil if the refusal does not
    /// depend on the clock. See `TrustedClock`.
    package var decidingTime: Int64? {
        get { rare?.values.decidingTime }
        set { change { $0.decidingTime = newValue } }
    }
    /// `replayed`, for a refresh: how far the session has come. Only the holder of the device's key is told.
    package var refreshProgress: RefreshProgress? {
        get { rare?.values.refreshProgress }
        set { change { $0.refreshProgress = newValue } }
    }

    private final class RareParts: Sendable, Equatable {
        struct Values: Sendable, Equatable {
            var remedy = ""
            var link: String?
            var endedSession: EndedSession?
            var work: WorkOffer?
            var previousStatus: Int?
            var decidingTime: Int64?
            var refreshProgress: RefreshProgress?
        }

        let values: Values

        init(_ values: Values) { self.values = values }

        static func == (left: RareParts, right: RareParts) -> Bool { left.values == right.values }
    }

    private mutating func change(_ edit: (inout RareParts.Values) -> Void) {
        var values = rare?.values ?? RareParts.Values()
        edit(&values)
        rare = values == RareParts.Values() ? nil : RareParts(values)
    }

    /// Whether the refusal has no part but `code`, `detail` and `retryAfter`.
    package var isPlain: Bool { rare == nil }

    /// How far a session has come: by this a client tells a copy of its own that was delayed from another
    /// holder of its keys.
    package struct RefreshProgress: Sendable, Equatable {
        /// The highest counter of a transcript that verified; 0 before there was one.
        package var counter: Int64
        /// The epoch that is in use.
        package var epoch: UInt32
        /// SHA-256 of the transcript that this concerns: of no other session's, and of no other copy.
        package var transcript: [UInt8]

        package init(counter: Int64, epoch: UInt32, transcript: [UInt8]) {
            self.counter = counter
            self.epoch = epoch
            self.transcript = transcript
        }
    }

    /// What a client is told whose session has ended.
    package struct EndedSession: Sendable, Equatable {
        package var reason: String
        /// Whole Unix seconds.
        package var at: Int64
        /// What kind of device took its place.
        package var by: String?

        package init(reason: String, at: Int64, by: String? = nil) {
            self.reason = reason
            self.at = at
            self.by = by
        }
    }

    package init(
        _ code: Code, detail: String = "", link: String? = nil, retryAfter: Int? = nil,
        previousStatus: Int? = nil, decidedAt moment: Int64? = nil
    ) {
        self.code = code
        self.detail = detail
        self.retryAfter = retryAfter
        if let link { self.link = link }
        if let previousStatus { self.previousStatus = previousStatus }
        if let moment { decidingTime = moment }
    }
}

/// Puzzles whose solution lets a login start although strangers have used up the account's limit. Source:
/// docs/protocol.md, "Proof of work".
package struct WorkOffer: Sendable, Equatable {
    /// The authority's own, opaque to clients.
    package var challenge: [UInt8]
    package var puzzles: Int
    /// Hashes that one puzzle takes on average.
    package var hashes: Int
    /// Whole Unix seconds.
    package var expires: Int64

    package init(challenge: [UInt8], puzzles: Int, hashes: Int, expires: Int64) {
        self.challenge = challenge
        self.puzzles = puzzles
        self.hashes = hashes
        self.expires = expires
    }
}

extension Refusal.Code {
    /// The HTTP status of the problem document. Source: docs/protocol.md, "Answers".
    package var status: Int {
        switch self {
        case .malformed, .bodyMismatch: 400
        case .unsigned, .unknownKey, .badSignature, .badTicket, .deviceUnsigned, .stale, .replayed,
            .tokenExpired,
            .sessionEnded, .sessionRequired, .wrongCredentials, .loginExpired:
            401
        case .schemeNotAllowed, .forbidden, .decideNeedsBody, .addressDenied: 403
        case .timeout: 408
        case .nameTaken: 409
        case .tooLarge: 413
        case .updateRequired: 426
        case .tooManyAttempts, .rateLimited: 429
        case .upstreamFailed: 502
        case .unavailable, .maintenance: 503
        case .upstreamTimeout: 504
        }
    }

    /// The stable code that a caller sees. The two failures of an upstream share one; the status
    /// distinguishes them.
    package var name: String { self == .upstreamTimeout ? Refusal.Code.upstreamFailed.rawValue : rawValue }

    /// The position in `allCases`, for tables.
    package var ordinal: Int {
        switch self {
        case .malformed: 0
        case .unsigned: 1
        case .unknownKey: 2
        case .badSignature: 3
        case .badTicket: 4
        case .deviceUnsigned: 5
        case .stale: 6
        case .replayed: 7
        case .bodyMismatch: 8
        case .tokenExpired: 9
        case .sessionEnded: 10
        case .updateRequired: 11
        case .wrongCredentials: 12
        case .loginExpired: 13
        case .tooManyAttempts: 14
        case .schemeNotAllowed: 15
        case .forbidden: 16
        case .decideNeedsBody: 17
        case .nameTaken: 18
        case .tooLarge: 19
        case .timeout: 20
        case .upstreamFailed: 21
        case .upstreamTimeout: 22
        case .unavailable: 23
        case .rateLimited: 24
        case .addressDenied: 25
        case .maintenance: 26
        case .sessionRequired: 27
        }
    }

    /// The number in `{"err":{"code":…}}` for form-md5 callers. Source: docs/protocol.md, "Answers".
    package var legacyNumber: Int {
        switch self {
        case .malformed: -1
        case .unknownKey: -2
        case .unsigned, .badSignature: -3
        case .stale: -4
        case .replayed: -5
        case .bodyMismatch: -6
        case .wrongCredentials: -7
        case .loginExpired: -17
        case .tooManyAttempts: -8
        case .schemeNotAllowed, .forbidden, .decideNeedsBody: -9
        case .tooLarge: -10
        case .timeout: -11
        case .upstreamFailed, .upstreamTimeout: -12
        case .unavailable: -13
        case .nameTaken: -14
        case .deviceUnsigned: -15
        case .badTicket: -16
        case .rateLimited: -18
        case .addressDenied: -19
        case .maintenance: -20
        case .updateRequired: -99
        case .sessionEnded, .sessionRequired: -100
        case .tokenExpired: -101
        }
    }

    package var title: String {
        switch self {
        case .malformed: "The request is not well formed"
        case .unsigned: "The request carries no signature of a known scheme"
        case .unknownKey: "The key id is not known here"
        case .badSignature: "The signature does not hold"
        case .badTicket: "The upload ticket is not known, has run out, or is for another request"
        case .deviceUnsigned: "This route asks for the device's own signature, too"
        case .stale: "The signature is too old, or from the future"
        case .replayed: "This request has been received before"
        case .bodyMismatch: "The body is not the one that was signed"
        case .tokenExpired: "The token has run out"
        case .sessionEnded: "The session has ended"
        case .sessionRequired: "Only a signed-in user may do this"
        case .updateRequired: "This version of the app is no longer served"
        case .wrongCredentials: "The name or the password is wrong"
        case .loginExpired: "The login took too long, and has to begin anew"
        case .tooManyAttempts: "Too many attempts"
        case .schemeNotAllowed: "The app's policy does not allow this scheme"
        case .forbidden: "Not allowed"
        case .decideNeedsBody: "The proof of this request lies in its body"
        case .nameTaken: "There is an account of that name"
        case .tooLarge: "The request is too large"
        case .timeout: "The request took too long to arrive"
        case .upstreamFailed: "The backend did not answer as it should"
        case .upstreamTimeout: "The backend did not answer in time"
        case .unavailable: "Not able to serve this request now"
        case .rateLimited: "Too many requests"
        case .addressDenied: "Not served from this address"
        case .maintenance: "Down for maintenance"
        }
    }
}

/// Our own fault, or the machine's: a store that cannot be read, a disk that is full. A fault fails closed.
///
/// `message` names the thing and what was expected; it is shown to operators, never to callers.
package struct OperationalError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// The command was used wrongly; exit 2.
        case usage
        /// The thing asked for failed; exit 1.
        case failed
        /// The thing that was named does not exist; exit 1.
        case missing
        /// The caller may not do this; exit 1.
        case forbidden
        /// The server or a store could not be reached; exit 3.
        case unreachable
    }

    package var kind: Kind
    package var message: String

    package init(_ kind: Kind, message: String) {
        self.kind = kind
        self.message = message
    }

    /// An error of several possible types: itself if it is operational, and otherwise a failure in the words
    /// of `error`, after `subject`.
    package init(_ error: any Error, in subject: String) {
        self = error as? OperationalError ?? OperationalError(.failed, message: "\(subject): \(error)")
    }

    package var description: String { message }
}

extension Refusal {
    /// The refusal of a request that an operational error stops: `unavailable`, to be repeated after five
    /// seconds. `subject` names what failed, in the refusal's detail.
    package init(_ error: OperationalError, in subject: StaticString) {
        self.init(.unavailable, detail: "\(subject): \(error.message)", retryAfter: 5)
    }
}

/// Why a text does not follow its grammar: a form, a multipart body, a structured field or JSON.
package struct ParseError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Offset of the offending byte.
    package var offset: Int
    /// What stands there, or `expected …`.
    package var reason: String

    package init(offset: Int, reason: String) {
        self.offset = offset
        self.reason = reason
    }

    package var description: String { "\(reason) at byte \(offset)" }
}
