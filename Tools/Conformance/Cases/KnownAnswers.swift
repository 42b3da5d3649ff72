import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// What the protocol computes from given values. Inputs are drawn anew for each run; what is expected is
/// computed by the gateway's own code.
extension ConformanceCase {
    static let knownAnswers: [ConformanceCase] = [
        ConformanceCase(
            "known-signature", section: "A signed request: message-signatures",
            requirement:
                "The signature base has the value of each component on a line of its own, covers what must "
                + "be covered, and is authenticated "
                + "with HMAC-SHA256."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            for sample in SignatureKnownAnswer.samples { try sample.check(port) }
        },
        ConformanceCase(
            "known-password", section: "Sign-up",
            requirement:
                "OPAQUE gets a password's UTF-8 with other spaces as U+0020, in normalisation form C."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            let samples: [(String, String?)] = [
                ("correct horse", "correct horse"), ("e\u{301}te\u{301}", "\u{E9}t\u{E9}"),
                ("a\u{A0}b\u{3000}c", "a b c"), ("\u{FF21}b ", "\u{FF21}b "), ("UPPER lower", "UPPER lower"),
                ("a\u{7}b", nil), ("", nil), (String(repeating: "x", count: 1_025), nil),
            ]
            for (text, expected) in samples {
                switch (try port.act("known-password", with: ["text": .string(text)]), expected) {
                case (.done(let answer), let expected?):
                    try answer.expect(
                        "bytes", equals: Array(expected.utf8), of: "The password \(text.debugDescription)")
                case (.failed, nil): break
                case (.done, nil):
                    throw ConformanceError(
                        "The password \(text.debugDescription) is refused.", observed: "it is taken")
                case (.failed(let code, _), _?):
                    throw ConformanceError(
                        "The password \(text.debugDescription) is taken.",
                        observed: "it is refused: `\(code)`")
                }
            }
        },
        ConformanceCase(
            "known-account", section: "Account names",
            requirement:
                "An account's name is in normalisation form C with A to Z in lower case; what cannot be a "
                + "name is refused."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            let samples: [(String, String?)] = [
                ("Alice", "alice"), ("alice smith", "alice smith"), ("A\u{30A}ngstrom", "\u{C5}ngstrom"),
                ("\u{212B}B", "\u{C5}b"), ("\u{C4}RGER", "\u{C4}rger"), ("J\u{30C}", "\u{1F0}"),
                (" alice", nil), ("a  b", nil),
                ("al\u{200B}ice", nil), ("a\u{A0}b", nil), ("", nil),
                (String(repeating: "a", count: 129), nil),
            ]
            for (text, expected) in samples {
                let reply = try port.act("known-account", with: ["text": .string(text)])
                var actual: String?
                if case .done(let answer) = reply { actual = answer.text("name") }
                let isSame = actual.map { Array($0.utf8) } == expected.map { Array($0.utf8) }
                guard isSame else {
                    throw ConformanceError(
                        "The name \(text.debugDescription) is \(expected?.debugDescription ?? "refused").",
                        observed: "it is \(actual?.debugDescription ?? "refused")")
                }
            }
        },
        ConformanceCase(
            "known-registration", section: "Sign-up",
            requirement:
                "OPAQUE's registration record is RFC 9807's with ristretto255-SHA512, HKDF and HMAC with "
                + "SHA-512, and Argon2id with 19 MiB."
        ) { (trial) throws(ConformanceError) in try OpaqueKnownAnswer().checkRegistration(trial.port()) },
        ConformanceCase(
            "known-login", section: "Login",
            requirement:
                "OPAQUE's login gives RFC 9807's third message and session key for the identities and the "
                + "context that the protocol names."
        ) { (trial) throws(ConformanceError) in try OpaqueKnownAnswer().checkLogin(trial.port()) },
        ConformanceCase(
            "known-session-keys", section: "Login",
            requirement:
                "Finish key and root are expanded from OPAQUE's session key; the request key is extracted "
                + "and expanded from the root; the next "
                + "root from the root and what the device agrees on."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            let (key, agreed) = (Secret(random: 64), Secret(random: 32))
            let keys = LoginKeys(sessionKey: key)
            let next = keys.root.next(agreed: agreed)
            let answer = try port.done(
                "known-session-keys",
                with: ["session_key": .bytes(key.exposed), "agreed": .bytes(agreed.exposed)])
            let what = "The session key \(Base64.encode(key.exposed.span, as: .url))"
            try answer.expect("root", equals: keys.root.secret.exposed, of: what)
            try answer.expect("request", equals: keys.root.requestKey.exposed, of: what)
            try answer.expect("next_root", equals: next.secret.exposed, of: what)
            try answer.expect("next_request", equals: next.requestKey.exposed, of: what)
            // The finish key authenticates alone: the product's code does not give it out.
            let message = Array("finish".utf8)
            let finish = Base64.decode(answer.text("finish"), as: .url) ?? []
            let (ours, theirs) = (
                keys.finish.authenticate(message.span),
                HMACSHA256(key: finish.span).authenticate(message.span)
            )
            try trial.expect(
                ours.indices.allSatisfy { ours[$0] == theirs[$0] },
                that: "\(what): `finish` is expanded from it with info `countersign/1 finish`.",
                observed: "it is \(answer.text("finish"))")
        },
        ConformanceCase(
            "known-refresh", section: "Refresh",
            requirement:
                "A refresh's transcript is its label, the app, the release, the session, the epoch, the "
                + "attempt, the time, the counter, the nonce and the purpose."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            let random = SystemRandom()
            guard let session = SessionID(random.bytes(16).span) else { throw .notStaged("no session id") }
            let transcript = RefreshTranscript(
                app: "shop", release: "r_known", token: SessionToken(id: session, epoch: 7),
                attempt: random.bytes(16),
                time: trial.now, counter: Int64(random.bytes(1)[0]) + 1,
                nonce: random.bytes(RefreshTranscript.nonceCount))
            let key = random.bytes(32)
            let tag = HMACSHA256(key: key.span).authenticate(transcript.bytes.span)
            let answer = try port.done(
                "known-refresh",
                with: [
                    "app": "shop", "release": "r_known", "session": .bytes(session.bytes), "epoch": 7,
                    "attempt": .bytes(transcript.attempt), "time": .integer(transcript.time),
                    "counter": .integer(transcript.counter), "nonce": .bytes(transcript.nonce),
                    "purpose": .string(transcript.purpose.rawValue), "key": .bytes(key),
                ])
            try answer.expect("transcript", equals: transcript.bytes, of: "The refresh")
            try answer.expect("mac", equals: tag.indices.map { tag[$0] }, of: "The refresh")
        },
    ]
}
