import struct CountersignTransport.TransportError
import CountersignHandshake
import CountersignVault
import CountersignWire

/// Why an operation of the client failed, of the legacy client, too. Each case needs another reaction.
package enum ClientOperationError: Error, Sendable {
    /// No account is signed in on this device, or a legacy server's token expired and nothing stored here
    /// could renew it.
    case notSignedIn
    /// The authority says that the session is over; a legacy server says it with `-100`. Nothing of the
    /// session is stored on this device any more.
    case sessionEnded(RefusalNotice)
    /// The name or the password is wrong, or the device's clock is.
    case wrongCredentials
    /// The new password has fewer characters than the authority demands. Nothing was changed.
    case passwordTooShort(minimum: Int)
    /// The server refused the request. Nothing changed on this device.
    case refused(RefusalNotice)
    /// Another account signed in during the operation or, if the operation concerns one session, another
    /// session of the same account began. The request was not sent in the name of the new login.
    case accountChanged
    /// There is no response, or not all of it. The error's `fate` says what became of the request and of its
    /// copies.
    case transport(TransportError)
    /// The caller was cancelled. Nothing of its request was sent.
    case cancelled
    /// A response came that is not the authority's, or does not belong to this request. The client did not
    /// act on it.
    case notGenuine(String)
    /// This build does not understand the authority's response.
    case notUnderstood(String)
    /// A value that the operation needs is not known here, or the scheme cannot sign the request.
    case incomplete(String)
    /// A password or a bearer token would go to a certificate that is not pinned for this server. Nothing was
    /// sent. See ``Installation/bearerSecrets``.
    case certificateNotPinned
    /// A legacy server's password or token would go out without TLS. Nothing was sent.
    case notOverTLS
    /// A legacy server has retired this version of the app (`-99`). The client sends nothing any more.
    case updateRequired(RefusalNotice)
    /// The operation needs the device's signing key, which is bound to presence, and the caller did not
    /// supply it. Nothing was changed; a call with presence continues what was begun.
    case presenceNeeded
    /// A login's key was to be bound to presence, and no user confirmed their presence. No account was signed
    /// in.
    case notPresent(PresenceStep)
    /// The device's keys are in hardware that cannot be used now, or hardware is required and absent. The
    /// text is for people. Nothing changed. Another attempt may succeed, and a login makes other keys if it
    /// may.
    case deviceKeyUnavailable(String)
    /// The device's keys are lost for good, and with them the session: it has ended on this device. Only a
    /// login helps. The text is for people.
    case deviceKeyLost(String)
    /// The client has resolved the cause of the refusal, but the body can be sent only once, and some or all
    /// of it was sent. The request succeeds with another body.
    case bodyUsedUp
    /// The vault is locked for now and opens again later. Nothing changed.
    case vaultLocked(String)
    /// The vault failed. The caller must not conclude anything from it.
    case vaultFailed(String)
    /// The machine's libraries or its memory failed.
    case machine(String)
}

extension ClientOperationError {
    package init(_ error: VaultError) {
        self =
            switch error {
            case .locked(let detail): .vaultLocked(detail)
            case .failed(let detail), .badName(let detail): .vaultFailed(detail)
            case .changed: .vaultFailed("another process changed the item at the same time")
            }
    }

    init(_ error: DeviceKeyError) {
        self =
            switch error {
            case .unavailable(let detail): .deviceKeyUnavailable(detail)
            case .lost(let detail): .deviceKeyLost(detail)
            case .badPoint: .notUnderstood("token: ephemeral: expected a point on P-256")
            }
    }
}

/// A refusal as the server wrote it: problem details with a stable code. Source: docs/protocol.md, "Answers";
/// RFC 9457.
package struct RefusalNotice: Sendable, Equatable {
    package var status: Int
    /// `session-ended`, `too-many-attempts`, …; empty if the response has no code.
    package var code = ""
    package var title = ""
    package var detail = ""
    /// The event's id in the server's log.
    package var instance: String?
    /// Seconds after which another attempt is worthwhile.
    package var retryAfter: Int?
    /// `stale`: the server's time, Unix seconds.
    package var time: Int64?
    /// `session-ended`: the reason, the time, and the class of the device that replaced this one.
    package var reason: String?
    package var at: Int64?
    package var by: String?
    package var updateURL: String?
    /// `too-many-attempts`: work by which the login may start all the same.
    package var work: WorkOffer?
    /// `replayed`, for a refresh: how far the session has come.
    package var refreshProgress: Refusal.RefreshProgress?
    /// Whether the authority is known to have said this now and to this request. A notice that is not genuine
    /// is shown, and the client does not act on it.
    package internal(set) var isGenuine = false
    /// The authority's time from a genuine `stale`, Unix seconds.
    var timeTold: Int64?

    package init(status: Int) { self.status = status }
}

extension RefusalNotice {
    /// Whether the authority says that a login has to begin anew: it took over a minute, or a first copy of
    /// its finish ended it.
    var isOfExpiredLogin: Bool { isGenuine && code == Refusal.Code.loginExpired.rawValue }

    var isOfWrongCredentials: Bool { code == Refusal.Code.wrongCredentials.rawValue }

    /// Reads a refusal. Members that are missing or of another type are left out: the status alone makes it a
    /// refusal.
    package init(_ response: Response) {
        self.init(status: response.status)
        if let value = response.message.value(of: "retry-after") {
            retryAfter = Int(response.message.text(value)).flatMap { (0...86_400).contains($0) ? $0 : nil }
        }
        guard let document = try? JSONReader.read(response.message.body) else { return }
        func text(_ name: String) -> String? { document.root[name]?.string }
        func seconds(_ name: String) -> Int64? {
            document.root[name].flatMap { document.integer($0, in: 0...Int(UInt32.max)) }.map(Int64.init)
        }
        code = text("code") ?? ""
        title = text("title") ?? ""
        detail = text("detail") ?? ""
        instance = text("instance")
        time = seconds("time")
        reason = text("reason")
        at = seconds("at")
        by = text("by")
        updateURL = text("update_url")
        work = WorkOffer(document)
        let counter = document.root["counter"].flatMap { document.integer($0, in: 0...(1 << 53)) }
        let epoch = seconds("epoch").map { UInt32($0) }
        let transcript = text("transcript").flatMap { Base64.decode($0, as: .url) }
        if let counter, let epoch, let transcript {
            refreshProgress = Refusal.RefreshProgress(
                counter: Int64(counter), epoch: epoch, transcript: transcript)
        }
    }
}

extension ClientOperationError {
    /// The same failure after another copy of the request whose response was lost: that nothing of this copy
    /// was sent does not mean that nothing was executed.
    var withUnknownOutcome: ClientOperationError {
        guard case .transport(let error) = self else { return self }
        return .transport(TransportError(error.cause, fate: .outcomeUnknown))
    }
}

extension WorkOffer {
    /// Nil where the refusal has none, or none that a client would solve.
    fileprivate init?(_ document: JSONDocument) {
        func number(_ name: String, upTo most: Int) -> Int? {
            document.root["work"]?[name].flatMap { document.integer($0, in: 1...most) }
        }
        guard let text = document.root["work"]?["challenge"]?.string, text.utf8.count <= 1_024,
            let challenge = Base64.decode(text, as: .url),
            let puzzles = number("puzzles", upTo: WorkPuzzles.mostPuzzles),
            let hashes = number("hashes", upTo: WorkPuzzles.mostHashes),
            let expires = number("expires", upTo: Int(UInt32.max))
        else { return nil }
        self.init(challenge: challenge, puzzles: puzzles, hashes: hashes, expires: Int64(expires))
    }
}
