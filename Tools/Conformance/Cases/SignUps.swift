import CountersignLab
import CountersignSeal
import CountersignWire

extension ConformanceCase {
    static let signUps: [ConformanceCase] = [
        ConformanceCase(
            "sign-up", section: "Sign-up",
            requirement:
                "An account is made by registration/start and registration/finish, each signed by the "
                + "release."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            try trial.signUp(port)
            for route in ["/registration/start", "/registration/finish"] {
                let requests = trial.requests("POST", path: Trial.own(route))
                try trial.expect(
                    !requests.isEmpty, that: "The port sends POST \(Trial.own(route)).",
                    observed: "it sends \(trial.sent)")
            }
        },
        ConformanceCase(
            "sign-up-name-taken", section: "Sign-up",
            requirement: "A name that is taken is reported as `name-taken`."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            try trial.signUp(port)
            try trial.expectFailure(
                port.act("sign-up", with: trial.credentials), code: "name-taken",
                that: "A second sign-up under the name fails.")
        },
        ConformanceCase(
            "forged-registration-key", section: "Sign-up",
            requirement:
                "A registration key that the authority has not signed is not used: its sender could read the "
                + "record."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            trial.front.intercept("POST", path: Trial.own("/registration/start")) {
                (request, forward) throws(NetworkError) in
                .answer(
                    Forgery.altered(
                        try forward(request), member: "registration_key", to: .bytes(SystemRandom().bytes(32))
                    ))
            }
            try trial.expectFailure(port.act("sign-up", with: trial.credentials), that: "The sign-up fails.")
            try trial.expectRulesUsed()
            let count = trial.requests("POST", path: Trial.own("/registration/finish")).count
            try trial.expect(
                count == 0, that: "No registration/finish follows the altered answer.",
                observed: "\(count) were sent")
        },
        ConformanceCase(
            "unsigned-answer", section: "Signed answers",
            requirement: "An answer of the authority's own routes without a signature is not believed."
        ) { (trial) throws(ConformanceError) in
            try expectSignUpRefused(trial) { (answer, _) in Forgery.unsigned(answer) }
        },
        ConformanceCase(
            "unbound-answer", section: "Signed answers",
            requirement:
                "An answer whose signature covers nothing of the request is not believed, though the "
                + "authority's key made it."
        ) { (trial) throws(ConformanceError) in
            let (key, now) = (try trial.answerKey(), trial.now)
            try expectSignUpRefused(trial) { (answer, _) in
                Forgery.signedUnbound(Forgery.unsigned(answer), by: key, at: now)
            }
        },
        ConformanceCase(
            "answer-of-a-stranger", section: "Signed answers",
            requirement: "An answer that another key than the authority's has signed is not believed."
        ) { (trial) throws(ConformanceError) in
            let (key, now) = (try Forgery.stranger(), trial.now)
            try expectSignUpRefused(trial) { (answer, request) in
                Forgery.signed(Forgery.unsigned(answer), to: request, by: key, at: now)
            }
        },
        ConformanceCase(
            "no-secret-on-the-wire", section: "Sign-up",
            requirement: "Neither the password nor the release's secret is sent in any request."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port()
            try trial.signUp(port)
            try trial.logIn(port)
            try trial.call(
                port, method: "POST", target: "/hello",
                members: ["body": .bytes(Array("{}".utf8)), "fields": ["content-type": "application/json"]])
            try port.done("refresh")
            try port.done("log-out")
            let secret = trial.deployment.releases[.ordinary]?.secret ?? ""
            for (what, texts) in [
                ("the password", encodings(of: Array(trial.password.utf8))),
                ("the release's secret", encodings(of: Base64.decode(secret, as: .url) ?? []) + [secret]),
            ] {
                for exchange in trial.front.exchanges {
                    let sent = exchange.request.shown.lowercased()
                    guard let found = texts.first(where: { sent.contains($0.lowercased()) }) else { continue }
                    throw ConformanceError(
                        "No request has \(what), in clear, encoded or hashed.",
                        observed:
                            "\(exchange.request.method) \(exchange.request.path) has \(what) as "
                            + "\(found.prefix(12))…"
                    )
                }
            }
        },
    ]

    /// The answer to registration/finish, changed so, is not taken for a sign-up.
    private static func expectSignUpRefused(
        _ trial: Trial, change: @escaping @Sendable (RawResponse, RawRequest) -> RawResponse
    ) throws(ConformanceError) {
        let port = try trial.port()
        trial.front.intercept("POST", path: Trial.own("/registration/finish"), times: 4) {
            (request, forward) throws(NetworkError) in
            .answer(change(try forward(request), request))
        }
        let reply = try port.act("sign-up", with: trial.credentials)
        try trial.expect(
            !trial.requests("POST", path: Trial.own("/registration/finish")).isEmpty,
            that: "The port sends registration/finish.",
            observed: "it sends \(trial.sent)")
        try trial.expectFailure(reply, that: "The sign-up is not reported as done.")
    }

    /// How a secret may appear in a request.
    private static func encodings(of secret: [UInt8]) -> [String] {
        let digest = SHA256.digest(secret.span)
        let hash = digest.indices.map { digest[$0] }
        let plain = String(validating: secret, as: UTF8.self).map { [$0] } ?? []
        return plain
            + [secret, hash].flatMap { bytes in
                let base64 = Base64.encode(bytes.span, as: .standard)
                // Without what depends on the bytes that follow.
                return [
                    Base64.encode(bytes.span, as: .url), String(base64.filter { $0 != "=" }.dropLast()),
                    hex(bytes),
                ]
            }
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
