import CountersignLab
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Refusals that end a session or send an app version away, and forged ones.
extension ConformanceCase {
    static let sessionEnds: [ConformanceCase] = [
        ConformanceCase(
            "unsigned-session-end", section: "Signed answers",
            requirement: "An answer without a signature ends no session."
        ) { (trial) throws(ConformanceError) in
            try expectSessionContinues(trial) { (answer, _) in answer }
        },
        ConformanceCase(
            "session-end-of-a-stranger", section: "Signed answers",
            requirement: "A session's end that an unknown key has signed does not end the session."
        ) { (trial) throws(ConformanceError) in
            let (key, now) = (try Forgery.stranger(), trial.now)
            try expectSessionContinues(trial) { (answer, request) in
                Forgery.signed(answer, to: request, by: key, at: now)
            }
        },
        ConformanceCase(
            "session-end-under-the-release", section: "Signed answers",
            requirement:
                "A session's end under the release's secret does not end the session: the secret is in every "
                + "copy of the app."
        ) { (trial) throws(ConformanceError) in
            let release = trial.deployment.releases[.ordinary]
            guard let secret = Base64.decode(release?.secret ?? "", as: .url),
                let keyID = KeyID(release?.keyID ?? "")
            else {
                throw .notStaged("no release")
            }
            let key = Credentials(keyID: keyID, key: SigningKey(Secret(copying: secret.span)))
            let now = trial.now
            try expectSessionContinues(trial) { (answer, request) in
                Forgery.signed(answer, to: request, by: key, at: now)
            }
        },
        ConformanceCase(
            "session-end-under-the-authority", section: "Sessions",
            requirement:
                "A session's end is believed under the session's own key alone: under the authority's, it "
                + "may refuse a request that an attacker changed on the way."
        ) { (trial) throws(ConformanceError) in
            let (key, now) = (try trial.answerKey(), trial.now)
            try expectSessionContinues(trial) { (answer, request) in
                Forgery.signed(answer, to: request, by: key, at: now)
            }
        },
        ConformanceCase(
            "forged-update-required", section: "Retiring a version",
            requirement: "`update-required` without a signature is not acted on."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            trial.front.intercept("GET", path: "/hello") { (_, _) in
                .answer(
                    Forgery.refusal(
                        426, code: "update-required", members: [("update_url", "https://evil.test/app")]))
            }
            try trial.tryCall(port)
            try trial.expectState(port, is: "signed-in", that: "The refusal was forged.")
            try trial.call(port)
        },
        ConformanceCase(
            "update-required", section: "Retiring a version",
            requirement: "A version that is retired is reported as `update-required`, with the link."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort(of: .retired)
            try whileRetired(trial) { () throws(ConformanceError) in
                try trial.expectFailure(trial.tryCall(port), code: "update-required", that: "The call fails.")
                try trial.expectState(port, is: "update-required", that: "The version is retired.")
                let reported = try port.done("status").text("link")
                try trial.expect(
                    reported == updateLink, that: "`status` reports the link \(updateLink).",
                    observed: "it reports `\(reported)`")
            }
        },
        ConformanceCase(
            "altered-answer-body", section: "Signed answers",
            requirement:
                "An answer's body is compared with the digest that is signed: with another body, it is not "
                + "believed."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort(of: .retired)
            try whileRetired(trial) { () throws(ConformanceError) in
                trial.front.intercept("GET", path: "/hello") { (request, forward) throws(NetworkError) in
                    var answer = try forward(request)
                    // As long as the link, which is the only thing that is changed.
                    answer.body = Array(answer.text.replacing("shop.example", with: "evil.example").utf8)
                    return .answer(answer)
                }
                try trial.tryCall(port)
                try trial.expectRulesUsed()
                try trial.expectState(
                    port, is: "signed-in", that: "The refusal has another link than the signed one.")
            }
            try trial.call(port)
        },
    ]

    private static let updateLink = "https://shop.example/app"

    /// What is done while the version of the app for that is retired.
    private static func whileRetired(_ trial: Trial, body: () throws(ConformanceError) -> Void)
        throws(ConformanceError)
    {
        let keyID = trial.deployment.releases[.retired]?.keyID ?? ""
        try trial.runCommand(["release", "retire", keyID, "--at", "now", "--update-url", updateLink])
        let result: ConformanceError?
        do {
            try body()
            result = nil
        } catch {
            result = error
        }
        try trial.runCommand(["release", "retire", keyID, "--undo"])
        if let result { throw result }
    }

    /// The session goes on after a refusal that is forged so.
    private static func expectSessionContinues(
        _ trial: Trial, sign: @escaping @Sendable (RawResponse, RawRequest) -> RawResponse
    ) throws(ConformanceError) {
        let port = try trial.signedInPort()
        let now = trial.now
        trial.front.intercept("GET", path: "/hello") { (request, _) in
            let refusal = Forgery.refusal(
                401, code: "session-ended", members: [("reason", "revoked"), ("at", .integer(now))])
            return .answer(sign(refusal, request))
        }
        try trial.tryCall(port)
        try trial.expectRulesUsed()
        try trial.expectState(port, is: "signed-in", that: "The refusal was forged.")
        try trial.call(port)
    }
}
