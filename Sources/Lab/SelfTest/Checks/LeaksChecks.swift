import CountersignWire

extension Check {
    /// What none of the answers that came till now may say.
    static func leaks(_ subject: Subject) -> [Check] {
        [
            Check("server-version", .leaks, "nothing more: the fields of all answers", ask: serverVersion),
            Check("stack-trace", .leaks, "nothing more: the bodies of all answers") { (inquiry) throws(Fault) in
                for response in inquiry.responses {
                    if let mark = traces.first(where: { response.text.contains($0) }) {
                        return .judged(false, expected: "no trace of the program inside", came: "`\(mark)`")
                    }
                }
                return .judged(
                    true, expected: "no trace of the program inside", came: "none in \(inquiry.responses.count)")
            },
            Check("secret", .leaks, "nothing more: all answers, for the key's secret") { (inquiry) throws(Fault) in
                let secret = String(decoding: inquiry.subject.secretText, as: UTF8.self)
                guard secret.utf8.count >= 8 else { return .notApplicable("a secret so short may stand anywhere") }
                let isSaid = inquiry.responses.contains { String(decoding: $0.bytes, as: UTF8.self).contains(secret) }
                return .judged(!isSaid, expected: "the secret in none", came: isSaid ? "it stands in one" : "in none")
            },
            Check("refusal-form", .leaks, "nothing more: the refusals among all answers", ask: refusalForm),
        ]
    }

    /// What programs print when they fall.
    private static let traces = [
        "Traceback (most recent call last)", "Fatal error:", "goroutine ", "Exception in thread", "\tat java.",
        "at Object.<anonymous>",
        ".swift:", ".php on line", "Stack trace:", "Segmentation fault",
    ]

    /// A product may be named; its version tells which of its flaws to try.
    private static func serverVersion(_ inquiry: Inquiry) throws(Fault) -> Finding {
        for response in inquiry.responses {
            for name in ["Server", "X-Powered-By", "Via", "X-AspNet-Version"] {
                guard let value = response.fields[name] else { continue }
                let product = name == "Via" ? String(value.drop { $0 != " " }) : value
                if product.contains(where: \.isNumber) {
                    return .judged(false, expected: "no versions", came: "\(name): \(value)")
                }
            }
        }
        return .judged(true, expected: "no versions", came: "none in \(inquiry.responses.count)")
    }

    /// Each has a stable code, and an event's id that no other has.
    private static func refusalForm(_ inquiry: Inquiry) throws(Fault) -> Finding {
        let expected = "a code of the protocol's and an instance of its own in each"
        var instances: Set<String> = []
        var refusals = 0
        for response in inquiry.responses {
            guard case .refused(_, let codes) = Said(.response(response)) else { continue }
            refusals += 1
            guard let document = try? JSONReader.read(response.body), !codes.isEmpty else {
                return .judged(false, expected: expected, came: "one without a code: \(response.status)")
            }
            let instance = document.root["instance"]?.string ?? document.root["err"]?["eventId"]?.string ?? ""
            guard !instance.isEmpty, instances.insert(instance).inserted else {
                return .judged(false, expected: expected, came: "one whose instance is missing or another's")
            }
        }
        return .judged(refusals > 0, expected: expected, came: "\(refusals) refusals")
    }
}
