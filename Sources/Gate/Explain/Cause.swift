import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What went wrong when a request was signed or in transit. A cause is named only if the signature holds once
/// the mistake is undone, or if the request permits no other explanation.
package struct Cause: Sendable, Equatable {
    /// Stable, for programs: lower-case words with hyphens. Two mistakes in one request are joined by `+`.
    package var code: String
    /// What happened.
    package var sentence: String
    /// How to correct it.
    package var remedy: String
    /// Where the signed text first differs from the received text; nil if they are equal.
    package var difference: Difference?

    init(_ mistake: Mistake, detail: String? = nil, difference: Difference? = nil) {
        self.init(
            code: mistake.code, sentence: mistake.sentence + (detail.map { ": \($0)" } ?? ""),
            remedy: mistake.remedy)
        self.difference = difference
    }

    package init(code: String, sentence: String, remedy: String) {
        self.code = code
        self.sentence = sentence
        self.remedy = remedy
    }

    /// Both at once.
    func and(_ other: Cause) -> Cause {
        var both = Cause(
            code: "\(code)+\(other.code)", sentence: "\(sentence); and \(other.sentence)",
            remedy: "\(remedy); \(other.remedy)")
        both.difference = difference ?? other.difference
        return both
    }
}

extension Cause {
    /// Why a request with a valid signature was refused: the gate's reason is the evidence. Nil if the caller
    /// did not cause it.
    static func ruleViolation(_ refusal: Refusal) -> Cause? {
        switch refusal.code {
        case .badSignature:
            Cause(
                code: "covers-too-little",
                sentence: "the signature holds, and the gate asks for more: \(refusal.detail)",
                remedy: "cover what is asked for, and name the release that the key was made for")
        case .replayed:
            Cause(
                code: "sent-twice", sentence: "the same signed request was received before",
                remedy: "make a new nonce for each request, and sign again before sending again")
        case .schemeNotAllowed:
            Cause(
                code: "scheme-not-allowed", sentence: "the signature holds: \(refusal.detail)",
                remedy:
                    "sign with a scheme that the app allows, or allow this one: countersign app "
                    + "policy APP --set schemes=…"
            )
        default: nil
        }
    }
}

extension Cause {
    /// How a clock is wrong, if that makes the signature stale; nil if the clock is not the reason.
    static func clockError(in claim: Claim, policy allowance: SchemePolicy, now: Int64) -> Cause? {
        // Times outside all calendars get no diagnosis and would overflow below.
        guard let created = claim.created.instant(allowance), created.magnitude < 1 << 53,
            now.magnitude < 1 << 53
        else { return nil }
        if case .unix(let time) = claim.created, let unit = unit(of: time, now: now, window: allowance.window)
        {
            return Cause(
                code: "milliseconds", sentence: "the time was sent in \(unit) instead of seconds",
                remedy: "send whole Unix seconds")
        }
        let ahead = created - now
        guard ahead.magnitude > allowance.window.magnitude else {
            guard let expires = claim.expires, expires <= now else { return nil }
            return Cause(
                code: "expired",
                sentence: "the signature expired \(now - expires) s before the time it is judged by",
                remedy: "sign anew for each request, or let it live longer")
        }
        let amount = "\(ahead.magnitude) s \(ahead > 0 ? "ahead of" : "behind") the time it is judged by"
        // Time zones differ by whole quarters of an hour, up to fourteen hours.
        let quarters = (ahead + (ahead > 0 ? 450 : -450)) / 900
        if quarters != 0, quarters.magnitude <= 56, abs(ahead - quarters * 900) <= 60 {
            return Cause(
                code: "local-time",
                sentence: "local time was sent for UTC, or the app's timezone is set wrongly: \(amount)",
                remedy:
                    "send the time in UTC; for form-md5, in the zone that the app's policy names (timezone)")
        }
        return Cause(
            code: "clock-off", sentence: "the signer's clock is \(amount), or the request is an old one",
            remedy: "set the clock (the refusal tells the time), and sign each request just before it is sent"
        )
    }

    private static func unit(of time: Int64, now: Int64, window: Int64) -> String? {
        for (factor, name) in [
            (1_000, "milliseconds"), (1_000_000, "microseconds"), (1_000_000_000, "nanoseconds"),
        ]
        where abs(time / Int64(factor) - now) <= max(window, 1) {
            return name
        }
        return nil
    }
}

/// Mistakes in a session's requests: the session's key signs, and the request must also name the release.
extension Cause {
    /// Nil if the named release is not the reason for the refusal. The signature is known to hold.
    static func releaseError(
        in claim: Claim, session: Session, question: Explanation.Question
    ) -> Cause? {
        guard let release = claim.release else {
            return Cause(
                code: "release-missing",
                sentence: "the session's key signed, and no release is named beside its token",
                remedy:
                    "send Countersign-Release once, with the key id of the release that calls, and cover it")
        }
        guard claim.unmetRequirements.isEmpty, question.policy.requiredFields.isEmpty else { return nil }
        return Cause(
            code: "release-differs",
            sentence:
                "the session's key signed, and countersign-release names \(release), which is not of "
                + "the session's app and "
                + "platform (\(session.app), \(session.platform))",
            remedy: "name the release that the session signed in from, or another of that app and platform")
    }
}

extension Explanation.Question {
    /// Sets the question for a session's request: the session's key is the right one, and the release's key
    /// is a likely wrong one.
    mutating func setSession(_ session: Session, token: KeyID?, key: SigningKey, release: AppRelease) {
        self.session = session
        keyID = token
        others.insert(KnownKey(ofCaller: release), at: 0)
        self.key = key
        nextKey = nil
    }
}

extension KnownKey {
    /// The release's key, used where the session's key should have signed.
    fileprivate init(ofCaller release: AppRelease) {
        self.init(
            release.key,
            cause: Cause(
                code: "secret-of-the-release",
                sentence: "the release's secret was used (\(release.id)); the token is a session's",
                remedy: "sign under a session's token with the session's request key"))
    }
}

/// A key that the request might have been signed with by mistake.
package struct KnownKey: Sendable {
    let key: SigningKey
    let cause: Cause

    init(_ key: SigningKey, cause: Cause) {
        self.key = key
        self.cause = cause
    }

    /// Another release of the same app.
    package init(of release: AppRelease) {
        key = release.key
        cause = Cause(
            code: "secret-of-another-release",
            sentence:
                "the secret of another release was used: \(release.id) (\(release.platform) "
                + "\(release.version))",
            remedy: "build each release with its own key id and secret")
    }

    /// A secret that the user of the explanation supplies; `name` tells which one it is.
    package init(_ secret: Secret, name: String) {
        key = SigningKey(secret)
        cause = Cause(
            code: "another-secret", sentence: "another secret was used: \(name)",
            remedy: "give the client the secret of this key id")
    }
}
