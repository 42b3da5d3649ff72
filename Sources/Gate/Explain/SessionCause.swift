import CountersignSchemes
import CountersignWire

/// What goes wrong with a session's requests: its key signs, and the release has to be named beside it.
extension Cause {
    /// Nil where the release that is named is not why it was refused. The signature is known to hold.
    static func ofRelease(
        named claim: Claim, beside session: Session, _ question: Explanation.Question
    ) -> Cause? {
        guard let release = claim.release else {
            return Cause(
                "release-missing", "the session's key signed, and no release is named beside its token",
                "send Countersign-Release once, with the key id of the release that calls, and cover it")
        }
        guard claim.shortfalls.isEmpty, question.policy.requiredFields.isEmpty else { return nil }
        return Cause(
            "release-differs",
            "the session's key signed, and countersign-release names \(release), which is not of the session's app and "
                + "platform (\(session.app), \(session.platform))",
            "name the release that the session signed in from, or another of that app and platform")
    }
}

extension Explanation.Question {
    /// Asks about a session's request: its own key is the right one, and its release's a likely wrong one.
    mutating func ask(about session: Session, _ token: KeyID?, _ key: SigningKey, callingFrom release: ReleaseKey) {
        self.session = session
        keyID = token
        others.insert(KnownKey(ofCaller: release), at: 0)
        self.key = key
        nextKey = nil
    }
}

extension KnownKey {
    /// The release's own key, where the session's should have signed.
    fileprivate init(ofCaller release: ReleaseKey) {
        self.init(
            release.key,
            Cause(
                "secret-of-the-release", "the release's secret was used (\(release.id)); the token is a session's",
                "sign under a session's token with the session's request key"))
    }
}
