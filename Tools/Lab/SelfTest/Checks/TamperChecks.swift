import CountersignSchemes
import CountersignWire

extension SelfTestCheck {
    /// Signed requests, changed after signing.
    static func tamper(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        [
            SelfTestCheck(
                "tamper-method", family: .tamper, sent: "a signed request under another method", run: method),
            SelfTestCheck(
                "tamper-path", family: .tamper, sent: "a signed request for another path", run: path),
            SelfTestCheck(
                "path-from-field", family: .tamper,
                sent: "a signed request for another path, with the signed one in fields of proxies",
                run: pathFromField),
            SelfTestCheck(
                "tamper-query", family: .tamper, sent: "a signed request with another value in its query"
            ) {
                (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.badSignature], shape: .bare) {
                    (draft) throws(OperationalError) in
                    try draft.replaceInTarget("selftest=", by: "selftest=0")
                }
            },
            SelfTestCheck(
                "tamper-query-added", family: .tamper,
                sent: "a signed request with one more parameter in its query"
            ) {
                (inquiry) throws(OperationalError) in
                try inquiry.expectRefusal(as: [.badSignature], shape: .bare) {
                    (draft) throws(OperationalError) in
                    draft.target += Array("&admin=1".utf8)
                }
            },
            SelfTestCheck(
                "tamper-field", family: .tamper,
                sent: "a signed request with another value in a field that is signed", run: field),
            SelfTestCheck(
                "tamper-content-type", family: .tamper, sent: "a signed request with another Content-Type",
                run: contentType),
            SelfTestCheck(
                "tamper-body", family: .tamper, sent: "a signed request with another body of the same length",
                run: body),
            SelfTestCheck(
                "tamper-host", family: .tamper, sent: "a signed request with another Host", run: host),
            SelfTestCheck(
                "foreign-host", family: .tamper,
                sent: "a request that is signed for another host, brought here"
            ) {
                (inquiry) throws(OperationalError) in
                var draft = inquiry.draft(.withBody)
                draft.authority = foreignHost
                return inquiry.result(
                    of: try inquiry.submit(try inquiry.sign(draft)), expecting: [.malformed, .badSignature])
            },
        ]
    }

    /// A host that cannot exist. Source: RFC 6761 §6.4.
    private static let foreignHost = "another.invalid"

    private static func method(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        guard case .backend = inquiry.subject.endpoint else {
            return .notApplicable("the authority's own routes have one method each; --path names another")
        }
        guard let weakness = inquiry.subject.scheme.selfTest?.weaknesses.method else {
            // A method without effect on any backend.
            return try inquiry.expectRefusal(as: [.badSignature], shape: .bare) {
                (draft) throws(OperationalError) in draft.method = "OPTIONS"
            }
        }
        return try inquiry.expectWeakness(weakness.reason) { (draft) throws(OperationalError) in
            weakness.change(&draft)
        }
    }

    private static func path(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        let change = { (draft: inout Draft) throws(OperationalError) in
            try draft.changePath(of: inquiry.subject)
        }
        guard let reason = inquiry.subject.scheme.selfTest?.weaknesses.path else {
            return try inquiry.expectRefusal(as: [.badSignature], change: change)
        }
        return try inquiry.expectWeakness(reason, change: change)
    }

    /// A gateway that takes the path from a proxy's field lets any client choose the path that is judged.
    private static func pathFromField(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        if let reason = inquiry.subject.scheme.selfTest?.weaknesses.path { return .notApplicable(reason) }
        return try inquiry.expectRefusal(as: [.badSignature]) { (draft) throws(OperationalError) in
            let (path, target) = (draft.path, draft.text)
            try draft.changePath(of: inquiry.subject)
            draft.setField("X-Original-Path", to: path)
            for name in ["X-Original-URL", "X-Rewrite-URL", "X-Original-URI", "X-Forwarded-Uri"] {
                draft.setField(name, to: target)
            }
        }
    }

    private static let noFields = SelfTestResult.notApplicable("the scheme signs no fields")

    private static func field(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        guard inquiry.subject.scheme.selfTest?.signsFields == true else { return noFields }
        var draft = inquiry.draft(.bare)
        draft.setField("X-Selftest", to: "as signed")
        draft = try inquiry.sign(draft)
        draft.setField("X-Selftest", to: "changed")
        return inquiry.result(of: try inquiry.submit(draft), expecting: [.badSignature])
    }

    private static func contentType(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        guard inquiry.subject.scheme.selfTest?.signsFields == true else { return noFields }
        return try inquiry.expectRefusal(as: [.badSignature]) { (draft) throws(OperationalError) in
            try draft.replace("application/json", by: "text/plain", inField: "Content-Type")
        }
    }

    private static func body(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        let change = { (draft: inout Draft) throws(OperationalError) in
            let mark =
                inquiry.subject.endpoint == .ownRoute
                ? "l_" : draft.body.contains(UInt8(ascii: "{")) ? ":\"" : "="
            let text = String(decoding: draft.body, as: UTF8.self)
            guard let first = text.part(after: mark, upTo: ["&", "\""])?.first else {
                throw OperationalError(.failed, message: "cannot be staged: the body has no value to change")
            }
            try draft.replaceInBody("\(mark)\(first)", by: "\(mark)\(first == "0" ? "1" : "0")")
        }
        if let reason = inquiry.subject.scheme.selfTest?.weaknesses.body {
            return try inquiry.expectWeakness(reason, change: change)
        }
        return try inquiry.expectRefusal(as: [.badSignature, .bodyMismatch], change: change)
    }

    private static func host(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        try inquiry.expectRefusal(as: [.malformed, .badSignature]) { (draft) throws(OperationalError) in
            draft.authority = foreignHost
        }
    }
}

extension Draft {
    /// Another path: for the authority an existing route, so that the signature is verified.
    fileprivate mutating func changePath(of subject: SelfTestSubject) throws(OperationalError) {
        let other =
            subject.endpoint == .ownRoute
            ? subject.prefix + "/registration/start" : path + "selftest-elsewhere"
        try replaceInTarget(path, by: other)
    }
}
