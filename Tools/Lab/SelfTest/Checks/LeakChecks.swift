import CountersignWire

extension SelfTestCheck {
    /// Contents that no response received so far may have.
    static func leaks(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        [
            SelfTestCheck(
                "server-version", family: .leaks, sent: "nothing more: the fields of all answers",
                run: serverVersion),
            SelfTestCheck("stack-trace", family: .leaks, sent: "nothing more: the bodies of all answers") {
                (inquiry) throws(OperationalError) in
                for response in inquiry.responses {
                    if let mark = traces.first(where: { response.text.contains($0) }) {
                        return .judged(
                            false, expected: "no trace of the program inside", observed: "`\(mark)`")
                    }
                }
                return .judged(
                    true, expected: "no trace of the program inside",
                    observed: "none in \(inquiry.responses.count)")
            },
            SelfTestCheck("secret", family: .leaks, sent: "nothing more: all answers, for the key's secret") {
                (inquiry) throws(OperationalError) in
                let secret = String(decoding: inquiry.subject.secretText, as: UTF8.self)
                guard secret.utf8.count >= 8 else {
                    return .notApplicable("a secret so short may stand anywhere")
                }
                let isSaid = inquiry.responses.contains {
                    String(decoding: $0.bytes, as: UTF8.self).contains(secret)
                }
                return .judged(
                    !isSaid, expected: "the secret in none", observed: isSaid ? "it stands in one" : "in none"
                )
            },
            SelfTestCheck(
                "refusal-form", family: .leaks, sent: "nothing more: the refusals among all answers",
                run: refusalForm),
        ]
    }

    /// Texts of stack traces and crashes.
    private static let traces = [
        "Traceback (most recent call last)", "Fatal error:", "goroutine ", "Exception in thread",
        "\tat java.",
        "at Object.<anonymous>",
        ".swift:", ".php on line", "Stack trace:", "Segmentation fault",
    ]

    /// A product name is allowed; a version tells an attacker which known flaws to try.
    private static func serverVersion(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        for response in inquiry.responses {
            for name in ["Server", "X-Powered-By", "Via", "X-AspNet-Version"] {
                guard let value = response.fields[name] else { continue }
                let product = name == "Via" ? String(value.drop { $0 != " " }) : value
                if product.contains(where: \.isNumber) {
                    return .judged(false, expected: "no versions", observed: "\(name): \(value)")
                }
            }
        }
        return .judged(true, expected: "no versions", observed: "none in \(inquiry.responses.count)")
    }

    /// Each refusal has a stable code and a unique event id.
    private static func refusalForm(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        let expected = "a code of the protocol's and an instance of its own in each"
        var instances: Set<String> = []
        var refusals = 0
        for response in inquiry.responses {
            guard case .refused(_, let codes) = ReplyOutcome(.response(response)) else { continue }
            refusals += 1
            guard let document = try? JSONReader.read(response.body), !codes.isEmpty else {
                return .judged(false, expected: expected, observed: "one without a code: \(response.status)")
            }
            let instance = document.root["instance"]?.string ?? document.root["err"]?["eventId"]?.string ?? ""
            guard !instance.isEmpty, instances.insert(instance).inserted else {
                return .judged(
                    false, expected: expected, observed: "one whose instance is missing or another's")
            }
        }
        return .judged(refusals > 0, expected: expected, observed: "\(refusals) refusals")
    }
}
