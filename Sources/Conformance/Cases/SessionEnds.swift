import CountersignLab
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Refusals that end a session or send an app version away, and forged ones.
extension ConformanceCase {
    static let sessionEnds: [ConformanceCase] = [
        ConformanceCase(
            "unsigned-session-end", section: "Signed answers", "An answer without a signature signs nobody out."
        ) { (trial) throws(CaseFailure) in
            try stay(trial) { (answer, _) in answer }
        },
        ConformanceCase(
            "session-end-of-a-stranger", section: "Signed answers",
            "A session's end that an unknown key has signed signs nobody out."
        ) { (trial) throws(CaseFailure) in
            let (key, now) = (try Forgery.stranger(), trial.now)
            try stay(trial) { (answer, request) in Forgery.signed(answer, to: request, by: key, at: now) }
        },
        ConformanceCase(
            "session-end-under-the-release", section: "Signed answers",
            "A session's end under the release's secret signs nobody out: the secret is in every copy of the app."
        ) { (trial) throws(CaseFailure) in
            let release = trial.deployment.releases[.ordinary]
            guard let secret = Base64.decode(release?.secret ?? "", .url), let keyID = KeyID(release?.keyID ?? "") else {
                throw .notStaged("no release")
            }
            let key = Credentials(keyID: keyID, key: SigningKey(Secret(copying: secret.span)))
            let now = trial.now
            try stay(trial) { (answer, request) in Forgery.signed(answer, to: request, by: key, at: now) }
        },
        ConformanceCase(
            "session-end-under-the-authority", section: "Sessions",
            "A session's end is believed under the session's own key alone: under the authority's, the word may be about what somebody "
                + "has changed on the way."
        ) { (trial) throws(CaseFailure) in
            let (key, now) = (try trial.answerKey(), trial.now)
            try stay(trial) { (answer, request) in Forgery.signed(answer, to: request, by: key, at: now) }
        },
        ConformanceCase(
            "forged-update-required", section: "Retiring a version", "`update-required` without a signature is not acted on."
        ) { (trial) throws(CaseFailure) in
            let port = try trial.signedInPort()
            trial.front.intercept("GET", path: "/hello") { (_, _) in
                .answer(Forgery.refusal(426, "update-required", [("update_url", "https://evil.test/app")]))
            }
            try trial.tryCall(port)
            try trial.expectState(port, "signed-in", "The refusal was forged.")
            try trial.call(port)
        },
        ConformanceCase(
            "update-required", section: "Retiring a version",
            "A version that is retired is reported as `update-required`, with the link."
        ) { (trial) throws(CaseFailure) in
            let port = try trial.signedInPort(of: .retired)
            let keyID = trial.deployment.releases[.retired]?.keyID ?? ""
            let link = "https://shop.example/app"
            try trial.operate(["release", "retire", keyID, "--at", "now", "--update-url", link])
            let reply: Port.Reply
            do throws(CaseFailure) {
                reply = try trial.tryCall(port)
                try trial.expectFailure(reply, code: "update-required", "The call fails.")
                try trial.expectState(port, "update-required", "The version is retired.")
            } catch {
                try trial.operate(["release", "retire", keyID, "--undo"])
                throw error
            }
            let reported = try port.done("status").text("link")
            try trial.operate(["release", "retire", keyID, "--undo"])
            try trial.expect(reported == link, "`status` reports the link \(link).", observed: "it reports `\(reported)`")
            try trial.call(port)
        },
    ]

    /// The session goes on after a refusal that is forged so.
    private static func stay(
        _ trial: Trial, _ sign: @escaping @Sendable (RawResponse, RawRequest) -> RawResponse
    ) throws(CaseFailure) {
        let port = try trial.signedInPort()
        let now = trial.now
        trial.front.intercept("GET", path: "/hello") { (request, _) in
            let refusal = Forgery.refusal(401, "session-ended", [("reason", "revoked"), ("at", .integer(now))])
            return .answer(sign(refusal, request))
        }
        try trial.tryCall(port)
        try trial.expectRulesUsed()
        try trial.expectState(port, "signed-in", "The refusal was forged.")
        try trial.call(port)
    }
}
