import CountersignAuthority
import CountersignWire

extension Command {
    static let accountVerify = Command(
        words: ["account", "verify"], summary: "mark an account as verified, or take that back",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")],
        options: [.flag("undo", meaning: "the account is not verified any longer"), .data, .json],
        notes: """
            Verified means that the owner has proved to receive messages sent to the account's address. A code
            of the purpose verify does the same when it is redeemed. The gate treats verified accounts like
            others; `account reset --if-verified` and your backend go by it.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let deployment = try run.deployment()
        var verified: Int64?
        if run.arguments.has("undo") {
            try deployment.revokeVerification(of: name, in: app)
        } else {
            verified = try deployment.verify(name, of: app, at: run.now)
        }
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description),
            "verified": verified.map { .integer($0) } ?? .null,
        ]
        try run.print(json) {
            verified.map { "\(name): verified since \(TimeText.text($0))" } ?? "\(name): not verified"
        }
        return .success
    }

    static let accountCode = Command(
        words: ["account", "code"], summary: "make a one-time code to send to an account's owner",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")],
        options: [
            purpose,
            .value(
                "valid", placeholder: "15m",
                meaning: "how long it is good: seconds, or 30m, 1h, at most 24h (default: 15m)"), .data,
            .json,
        ],
        notes: """
            Eight digits, printed once; only a keyed digest is kept. A code is valid for one use and allows
            \(StoredAccountCode.mostTries) tries. Up to \(CodePace.mostLive) codes of a purpose are valid at a
            time. After \(CodePace.mostLive) in a day, one an hour can be made. Countersign does not send
            codes: deliver the code to the account's address; check the entry with `account redeem`.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let purpose = try run.codePurpose()
        let lifetime = try run.validity() ?? AccountCode.lifetime
        let made = try run.deployment().makeCode(
            for: purpose, of: name, in: app, lifetime: lifetime, at: run.now)
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description),
            "purpose": .string(purpose.description), "id": .string(made.id.description),
            "code": .string(made.code.text), "until": .integer(made.until),
        ]
        try run.print(json) { made.code.text }
        if !run.arguments.has("json") {
            run.console.note("\(made.id), valid for one use until \(TimeText.text(made.until))")
        }
        return .success
    }

    static let accountRedeem = Command(
        words: ["account", "redeem"], summary: "compare a code that an account's owner has entered",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")],
        options: [
            .flag("code-stdin", meaning: "read the code from standard input"), purpose,
            .value("id", placeholder: "ID", meaning: "the id that `account code` printed with the code"),
            .data, .json,
        ],
        notes: """
            The right code uses up all codes of the purpose. A right code of the purpose verify also verifies
            the account. With --id, a wrong code costs a try of that code only. Without it, a wrong code
            costs no code a try, and counts against a budget of the account and purpose:
            \(UnnamedGuesses.most) at any time, and then one an hour. Status 1 if the code is not accepted:
            `wrong`, with the number of tries left; `none`: there is no valid code, because none was made,
            or it was used or tried too often, or it has expired; or `limited`: the budget without --id is
            used up, and the code was not compared.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let purpose = try run.codePurpose()
        let code = try run.enteredCode()
        let id = try run.codeID()
        let outcome = try run.deployment().redeem(code, for: purpose, id, of: name, in: app, at: run.now)
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description),
            "purpose": .string(purpose.description), "accepted": .bool(outcome == .accepted),
            "reason": outcome.reason.map { .string($0) } ?? .null,
            "tries_left": outcome.triesLeft.map { .integer($0) } ?? .null,
        ]
        try run.print(json) {
            switch outcome {
            case .accepted: "accepted"
            case .wrong(let left): "wrong; tries left: \(left)"
            case .limited(let time):
                """
                limited: too many wrong codes were entered without --id; pass it, or try again at \
                \(TimeText.text(time))
                """
            case .none:
                """
                none: there is no valid code for \(purpose): none was made, or it was used or tried too \
                often, or it has expired
                """
            }
        }
        return outcome == .accepted ? .success : .failed
    }

    private static let purpose = Option.value(
        "purpose", placeholder: "P",
        meaning: "what the code is good for: \(CodePurpose.expected) (default: \(CodePurpose.verify))")
}

extension Deployment.CodeRedemption {
    fileprivate var reason: String? {
        switch self {
        case .accepted: nil
        case .wrong: "wrong"
        case .limited: "limited"
        case .none: "none"
        }
    }

    fileprivate var triesLeft: Int64? { if case .wrong(let left) = self { left } else { nil } }
}

extension Invocation {
    fileprivate func codePurpose() throws(OperationalError) -> CodePurpose {
        guard let text = arguments.value("purpose") else { return .verify }
        guard let purpose = CodePurpose(text) else {
            throw OperationalError(.usage, message: "--purpose `\(text)`: expected \(CodePurpose.expected)")
        }
        return purpose
    }

    fileprivate func codeID() throws(OperationalError) -> AccountCodeID? {
        guard let text = arguments.value("id") else { return nil }
        guard let id = AccountCodeID(text) else {
            throw OperationalError(.usage, message: "--id `\(text)`: expected \(AccountCodeID.expected)")
        }
        return id
    }

    fileprivate func enteredCode() throws(OperationalError) -> AccountCode {
        let text: String
        if arguments.has("code-stdin") {
            text = String(decoding: Invocation.trimmed(try console.read(limit: 256)), as: UTF8.self)
        } else if let typed = try console.ask("code: ") {
            text = typed
        } else {
            throw OperationalError(
                .usage, message: "the code is missing: expected --code-stdin, or a terminal to ask at")
        }
        guard let code = AccountCode(typed: text) else {
            throw OperationalError(.usage, message: "the code: expected \(AccountCode.expected)")
        }
        return code
    }

    /// The option --valid in seconds; nil without it.
    func validity() throws(OperationalError) -> Int64? {
        guard let text = arguments.value("valid") else { return nil }
        // A number without a unit is in seconds.
        guard let seconds = PolicyKey.seconds(text[...]) ?? PolicyKey.seconds("\(text)s") else {
            throw OperationalError(
                .usage, message: "--valid `\(text)`: expected 1s to 24h, such as 30m or 1h")
        }
        return Int64(seconds)
    }
}
