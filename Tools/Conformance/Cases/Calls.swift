import CountersignLab
import CountersignWire

extension ConformanceCase {
    static let calls: [ConformanceCase] = [
        ConformanceCase(
            "signed-get", section: "A signed request: message-signatures",
            requirement:
                "A call is signed with the session's key, covers what must be covered, and was made within "
                + "the window."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            try trial.call(port)
            let signed = try signature(of: "GET", path: "/hello", in: trial)
            for name in ["@method", "@authority", "@path", "@query", "countersign-release"]
            where !signed.components.contains(name) {
                throw ConformanceError(
                    "The signature covers `\(name)`.", observed: signed.components.joined(separator: " "))
            }
            try trial.expect(
                signed.keyID?.hasPrefix("s_") ?? false, that: "The `keyid` is the session's token.",
                observed: "it is \(signed.keyID ?? "missing")")
            try expectRecentCreation(of: [signed], in: trial)
        },
        ConformanceCase(
            "signed-query", section: "A signed request: message-signatures",
            requirement:
                "Path and query are signed and sent as they are: escapes, repeated names, an empty query."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            for target in ["/hello?x=1&y=%2F&x=2", "/a%20b/%C3%A4?q=a+b", "/hello?", "/hello?a=b?c=/d"] {
                try trial.call(port, method: "GET", target: target)
                let sent = trial.front.exchanges.last?.request.target ?? ""
                try trial.expect(
                    sent == target, that: "The target is sent as \(target).",
                    observed: "it is sent as \(sent)")
            }
        },
        ConformanceCase(
            "signed-post", section: "A signed request: message-signatures",
            requirement:
                "A body's digest and type are covered, and the backend gets the body as it was given."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            let body = Array(#"{"amount":5,"text":"\#u{E9}"}"#.utf8)
            let answer = try trial.call(
                port, method: "POST", target: "/orders",
                members: ["body": .bytes(body), "fields": ["content-type": "application/json"]])
            let signed = try signature(of: "POST", path: "/orders", in: trial)
            for name in ["content-digest", "content-type"] where !signed.components.contains(name) {
                throw ConformanceError(
                    "The signature covers `\(name)`.", observed: signed.components.joined(separator: " "))
            }
            let request = trial.requests("POST", path: "/orders").last
            try trial.expect(
                request?.body == body, that: "The body is sent as it was given.",
                observed: "\(request?.body.count ?? 0) bytes of another content")
            let returned = Base64.decode(answer.text("body"), as: .url).flatMap {
                try? JSONReader.read($0).root
            }
            try trial.expect(
                returned?["method"]?.string == "POST", that: "`call` reports the backend's answer in `body`.",
                observed: "it reports \(answer.text("body").prefix(60))")
        },
        ConformanceCase(
            "fresh-nonces", section: "Fresh, and once",
            requirement: "Each request has a nonce of its own, equal calls too."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            for _ in 0..<5 { try trial.call(port) }
            try expectFreshNonces(trial)
        },
        ConformanceCase(
            "lost-call-answer", section: "Fresh, and once",
            requirement:
                "A call whose answer is lost is not sent again as the same request, and does not end the "
                + "session."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            trial.front.intercept("GET", path: "/hello") { (request, forward) throws(NetworkError) in
                _ = try forward(request)
                return .cut
            }
            try trial.tryCall(port)
            try trial.expectRulesUsed()
            try expectFreshNonces(trial)
            try trial.call(port)
        },
        ConformanceCase(
            "replayed-call", section: "Answers",
            requirement: "A refusal as `replayed` is reported, and the request is not sent again."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            trial.front.intercept("GET", path: "/hello") { (request, forward) throws(NetworkError) in
                _ = try forward(request)
                return .answer(try forward(request))
            }
            try trial.expectFailure(trial.tryCall(port), code: "replayed", that: "The call fails.")
            let count = trial.requests("GET", path: "/hello").count
            try trial.expect(
                count == 1, that: "The call is sent once.", observed: "it is sent \(count) times")
            try trial.expectState(port, is: "signed-in", that: "The session goes on.")
            try trial.call(port)
        },
        ConformanceCase(
            "idempotency-key", section: "Idempotent requests",
            requirement:
                "A call that is to be done once bears an idempotency key, is sent again under the same key "
                + "where no answer came, and is signed anew."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            trial.front.intercept("POST", path: "/orders") { (request, forward) throws(NetworkError) in
                _ = try forward(request)
                return .cut
            }
            let order: JSONValue = [
                "body": .bytes(Array(#"{"amount":5}"#.utf8)), "fields": ["content-type": "application/json"],
                "once": true,
            ]
            let target = "/orders?of=\(trial.account)"
            try trial.call(port, method: "POST", target: target, members: order)
            let requests = trial.requests("POST", path: "/orders")
            let keys = requests.map { $0.fields["idempotency-key"] ?? "none" }
            try trial.expect(
                requests.count == 2, that: "The call is sent twice.",
                observed: "it is sent \(requests.count) times"
            )
            try trial.expect(
                Set(keys).count == 1 && keys.first != "none", that: "Both have the same Idempotency-Key.",
                observed: keys.joined(separator: ", "))
            try expectFreshNonces(trial)
            let signed = try signature(of: "POST", path: "/orders", in: trial)
            try trial.expect(
                signed.components.contains("idempotency-key"),
                that: "The signature covers `idempotency-key`.",
                observed: signed.components.joined(separator: " "))
            let count = trial.deployment.backend.count(of: target)
            try trial.expect(
                count == 1, that: "The backend does it once.", observed: "it was asked \(count) times")
            try trial.call(port, method: "POST", target: target, members: order)
            let last = trial.requests("POST", path: "/orders").last?.fields["idempotency-key"] ?? "none"
            try trial.expect(
                !keys.contains(last), that: "Another call has another key.", observed: "the same: \(last)")
        },
        ConformanceCase(
            "redirect", section: "Signed answers",
            requirement: "A redirect is not followed with a signature, on this host or to another."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            let elsewhere: InterceptionProxy
            do throws(LabError) {
                elsewhere = try InterceptionProxy(showing: trial.certificates.current)
            } catch {
                throw .notStaged(error.description)
            }
            defer { elsewhere.stop() }
            for location in ["https://\(TestCertificates.host):\(elsewhere.port)/stolen", "/stolen"] {
                for method in ["GET", "POST"] {
                    trial.front.intercept(method, path: "/hello") { (_, _) in
                        .answer(RawResponse(307, fields: [("Location", location)]))
                    }
                    try trial.tryCall(port, method: method)
                    try trial.expectRulesUsed()
                }
            }
            let followed = elsewhere.exchanges + trial.front.exchanges.filter { $0.request.path == "/stolen" }
            try trial.expect(
                followed.isEmpty, that: "No request goes where the redirect points.",
                observed: followed.map {
                    "\($0.request.method) \($0.request.target) to \($0.request.fields["host"] ?? "?")"
                }
                .joined(separator: ", "))
        },
        ConformanceCase(
            "truncated-answer", section: "Answers",
            requirement: "An answer that ends before its length is not taken for a whole one."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            trial.front.intercept("GET", path: "/hello", times: 4) { (_, _) in
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n"
                return .bytes(Array("\(head)half of it".utf8))
            }
            try trial.expectFailure(trial.tryCall(port), that: "The call fails.")
        },
    ]

    /// What the last request of that method and path says in its signature.
    static func signature(of method: String, path: String, in trial: Trial) throws(ConformanceError)
        -> RequestSignature
    {
        guard let request = trial.requests(method, path: path).last else {
            throw ConformanceError("The port sends \(method) \(path).", observed: "it sends \(trial.sent)")
        }
        guard let signed = RequestSignature(request) else {
            throw ConformanceError("\(method) \(path) is signed.", observed: "it has no Signature-Input")
        }
        return signed
    }

    static func expectFreshNonces(_ trial: Trial) throws(ConformanceError) {
        let nonces = trial.front.exchanges.map { RequestSignature($0.request)?.nonce ?? "none" }
        try trial.expect(
            Set(nonces).count == nonces.count && !nonces.contains("none"),
            that: "Each request has a nonce of its own.",
            observed: nonces.joined(separator: ", "))
    }

    /// Within half the window of now.
    static func expectRecentCreation(of signed: [RequestSignature], in trial: Trial) throws(ConformanceError)
    {
        for one in signed {
            let off = one.created.map { $0 - trial.now }
            try trial.expect(
                abs(off ?? 3_600) <= 30, that: "`created` is the server's time.",
                observed: off.map { "it is off by \($0) s" } ?? "there is none")
        }
    }
}
