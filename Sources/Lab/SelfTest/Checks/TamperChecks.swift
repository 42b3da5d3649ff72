import CountersignSchemes
import CountersignWire

extension Check {
    /// A signed request, changed on its way.
    static func tamper(_ subject: Subject) -> [Check] {
        [
            Check("tamper-method", .tamper, "a signed request under another method", ask: method),
            Check("tamper-path", .tamper, "a signed request for another path", ask: path),
            Check(
                "path-from-field", .tamper,
                "a signed request for another path, with the signed one in fields of proxies",
                ask: pathFromField),
            Check("tamper-query", .tamper, "a signed request with another value in its query") {
                (inquiry) throws(Fault) in
                try inquiry.refuses([.badSignature], .bare) { (draft) throws(Fault) in
                    try draft.replaceInTarget("selftest=", by: "selftest=0")
                }
            },
            Check("tamper-query-added", .tamper, "a signed request with one more parameter in its query") {
                (inquiry) throws(Fault) in
                try inquiry.refuses([.badSignature], .bare) { (draft) throws(Fault) in
                    draft.target += Array("&admin=1".utf8)
                }
            },
            Check("tamper-field", .tamper, "a signed request with another value in a field that is signed", ask: field),
            Check("tamper-content-type", .tamper, "a signed request with another Content-Type", ask: contentType),
            Check("tamper-body", .tamper, "a signed request with another body of the same length", ask: body),
            Check("tamper-host", .tamper, "a signed request with another Host", ask: host),
            Check("foreign-host", .tamper, "a request that is signed for another host, brought here") {
                (inquiry) throws(Fault) in
                var draft = inquiry.draft(.withBody)
                draft.authority = foreignHost
                return inquiry.judged(try inquiry.ask(try inquiry.sign(draft)), [.malformed, .badSignature])
            },
        ]
    }

    /// Nobody's. Source: RFC 6761 §6.4.
    private static let foreignHost = "another.invalid"

    private static func method(_ inquiry: Inquiry) throws(Fault) -> Finding {
        guard case .backend = inquiry.subject.place else {
            return .notApplicable("the authority's own routes have one method each; --path names another")
        }
        guard inquiry.subject.scheme == .formMD5 else {
            // One that no backend does anything for.
            return try inquiry.refuses([.badSignature], .bare) { (draft) throws(Fault) in draft.method = "OPTIONS" }
        }
        return try inquiry.leavesOpen("form-md5 does not sign the method: the form of a POST is good as a GET's query")
        {
            (draft) throws(Fault) in
            draft.target = Array("\(draft.path)?".utf8) + draft.body
            draft.fields.removeAll { $0.isNamed("Content-Type") }
            draft.method = "GET"
            draft.body = []
        }
    }

    private static func path(_ inquiry: Inquiry) throws(Fault) -> Finding {
        let change = { (draft: inout Draft) throws(Fault) in try draft.goElsewhere(inquiry.subject) }
        guard inquiry.subject.scheme == .formMD5 else { return try inquiry.refuses([.badSignature], change: change) }
        return try inquiry.leavesOpen("form-md5 does not sign the path", change: change)
    }

    /// Where a gateway takes the path that it judges from what a proxy might have said, anybody says it.
    private static func pathFromField(_ inquiry: Inquiry) throws(Fault) -> Finding {
        guard inquiry.subject.scheme != .formMD5 else { return .notApplicable("form-md5 does not sign the path") }
        return try inquiry.refuses([.badSignature]) { (draft) throws(Fault) in
            let (path, target) = (draft.path, draft.text)
            try draft.goElsewhere(inquiry.subject)
            draft.set("X-Original-Path", path)
            for name in ["X-Original-URL", "X-Rewrite-URL", "X-Original-URI", "X-Forwarded-Uri"] {
                draft.set(name, target)
            }
        }
    }

    private static func field(_ inquiry: Inquiry) throws(Fault) -> Finding {
        switch inquiry.subject.scheme {
        case .messageSignatures, .sigV4: break
        case .formMD5, .authV1, .authV2, .authV4, .token: return .notApplicable("the scheme signs no fields")
        }
        var draft = inquiry.draft(.bare)
        draft.set("X-Selftest", "as signed")
        draft = try inquiry.sign(draft)
        draft.set("X-Selftest", "changed")
        return inquiry.judged(try inquiry.ask(draft), [.badSignature])
    }

    private static func contentType(_ inquiry: Inquiry) throws(Fault) -> Finding {
        switch inquiry.subject.scheme {
        case .messageSignatures, .sigV4:
            return try inquiry.refuses([.badSignature]) { (draft) throws(Fault) in
                try draft.replace("application/json", by: "text/plain", inField: "Content-Type")
            }
        case .formMD5, .authV1, .authV2, .authV4, .token: return .notApplicable("the scheme signs no fields")
        }
    }

    private static func body(_ inquiry: Inquiry) throws(Fault) -> Finding {
        let change = { (draft: inout Draft) throws(Fault) in
            let mark = inquiry.subject.place == .ownRoute ? "l_" : draft.body.contains(UInt8(ascii: "{")) ? ":\"" : "="
            let text = String(decoding: draft.body, as: UTF8.self)
            guard let first = text.part(after: mark, upTo: ["&", "\""])?.first else {
                throw Fault(.failed, "cannot be staged: the body has no value to change")
            }
            try draft.replaceInBody("\(mark)\(first)", by: "\(mark)\(first == "0" ? "1" : "0")")
        }
        guard inquiry.subject.scheme != .authV2 else {
            return try inquiry.leavesOpen("auth-v2 does not sign a body beside parameters in the query", change: change)
        }
        return try inquiry.refuses([.badSignature, .bodyMismatch], change: change)
    }

    private static func host(_ inquiry: Inquiry) throws(Fault) -> Finding {
        try inquiry.refuses([.malformed, .badSignature]) { (draft) throws(Fault) in draft.authority = foreignHost }
    }
}

extension Draft {
    /// Another path: on the authority's own ground one that is there, so that it is judged.
    fileprivate mutating func goElsewhere(_ subject: Subject) throws(Fault) {
        let other = subject.place == .ownRoute ? subject.prefix + "/registration/start" : path + "selftest-elsewhere"
        try replaceInTarget(path, by: other)
    }
}
