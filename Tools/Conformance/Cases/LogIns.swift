import CountersignLab
import CountersignWire

extension ConformanceCase {
    static let logIns: [ConformanceCase] = [
        ConformanceCase(
            "log-in", section: "Login", requirement: "A login opens a session, and `status` names it."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            try trial.signUp(port)
            let login = try trial.logIn(port)
            try trial.expect(
                SessionID(login.text("session")) != nil && login.text("account") == trial.account,
                that: "`log-in` reports `account` and `session`, the id of 22 characters.",
                observed: login.shown)
            try trial.expectState(port, is: "signed-in", that: "The login is kept.")
            try trial.call(port)
        },
        ConformanceCase(
            "wrong-password", section: "Login",
            requirement: "A wrong password is reported as `wrong-credentials`, and no account is signed in."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            try trial.signUp(port)
            let reply = try port.act(
                "log-in",
                with: ["account": .string(trial.account), "password": .string(trial.password + "x")])
            try trial.expectFailure(
                reply, code: "wrong-credentials", that: "A login with a wrong password fails.")
            try trial.expectState(port, is: "signed-out", that: "The login failed.")
            try trial.logIn(port)
        },
        ConformanceCase(
            "unknown-account", section: "Login",
            requirement:
                "An account that does not exist is reported as `wrong-credentials`, as a wrong password is."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            try trial.expectFailure(
                port.act("log-in", with: trial.credentials), code: "wrong-credentials",
                that: "A login of an unknown account fails.")
        },
        ConformanceCase(
            "lost-login-answer", section: "Login",
            requirement:
                "If the answer to login/finish is lost, no account is signed in, no finish is sent twice, "
                + "and another login succeeds."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            try trial.signUp(port)
            trial.front.intercept("POST", path: Trial.own("/login/finish")) {
                (request, forward) throws(NetworkError) in
                _ = try forward(request)
                return .cut
            }
            if case .failed = try port.act("log-in", with: trial.credentials) {
                try trial.expectState(port, is: "signed-out", that: "The answer to login/finish was lost.")
            }
            try trial.expectRulesUsed()
            try trial.logIn(port)
            try trial.call(port)
            let ids = trial.requests("POST", path: Trial.own("/login/finish")).map {
                $0.bodyText("login_id") ?? ""
            }
            try trial.expect(
                Set(ids).count == ids.count, that: "Each `login_id` is finished once.",
                observed: "\(ids.count) finishes for \(Set(ids).count) logins")
        },
        ConformanceCase(
            "second-device", section: "Slots",
            requirement: "A login elsewhere that takes the slot ends the session here, which is reported as "
                + "`session-ended` with the reason `replaced`."
        ) { (trial) throws(ConformanceError) in
            let first = try trial.signedInPort()
            let second = try trial.port()
            try trial.logIn(second)
            try trial.expectFailure(
                trial.tryCall(first), code: "session-ended", that: "A call of the first device fails.")
            try expectEnded(first, in: trial, reason: "replaced")
            try trial.call(second)
        },
        ConformanceCase(
            "revoked-session", section: "Sessions",
            requirement:
                "A session that an administrator has ended is reported as `session-ended`, and is not kept."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            try trial.signUp(port)
            let session = try trial.logIn(port).text("session")
            try trial.runCommand(["session", "revoke", session])
            try trial.expectFailure(trial.tryCall(port), code: "session-ended", that: "The call fails.")
            try expectEnded(port, in: trial, reason: "revoked")
        },
        ConformanceCase(
            "log-out", section: "Sessions",
            requirement:
                "A logout ends the session at the authority, and nothing is sent under it afterwards."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            try port.done("log-out")
            try trial.expect(
                trial.requests("POST", path: Trial.own("/logout")).count == 1,
                that: "One POST \(Trial.own("/logout")) is sent.",
                observed: "the port sends \(trial.sent)")
            try trial.expectState(port, is: "signed-out", that: "The session is over.")
            trial.front.clearExchanges()
            try trial.expectFailure(trial.tryCall(port), that: "A call after the logout fails.")
            let under = trial.front.exchanges.filter {
                RequestSignature($0.request)?.keyID?.hasPrefix("s_") ?? false
            }
            try trial.expect(
                under.isEmpty, that: "Nothing is sent under the session after its logout.",
                observed: "the port sends \(trial.sent)")
        },
    ]

    private static func expectEnded(_ port: ClientPort, in trial: Trial, reason: String)
        throws(ConformanceError)
    {
        try trial.expectState(port, is: "signed-out", that: "The session has ended.")
        let actual = try port.done("status").text("reason")
        try trial.expect(
            actual == reason, that: "`status` reports the reason `\(reason)`.",
            observed: "it reports `\(actual)`")
    }
}
