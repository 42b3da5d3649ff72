import CountersignSchemes
import CountersignTransport
import CountersignWire

extension Check {
    /// Ways around what is strong, by something that is weaker.
    static func downgrade(_ subject: Subject) -> [Check] {
        let others = SchemeName.signing.filter { $0 != subject.scheme }
        return others.map { other in
            Check(
                "downgrade-\(other.rawValue)", .downgrade, "a request signed with the same key under \(other.rawValue)"
            ) {
                (inquiry) throws(Fault) in
                try asks(under: other, inquiry)
            }
        } + [
            Check("certificate", .downgrade, "a TLS handshake", ask: certificate),
            Check("plain-http", .downgrade, "HTTP without TLS to the TLS port", ask: plainHTTP),
            Check("tls-1.1", .downgrade, "a handshake that offers TLS 1.1 at most") { (inquiry) throws(Fault) in
                try handshake(inquiry, .tls11)
            },
            Check("tls-1.0", .downgrade, "a handshake that offers TLS 1.0 at most") { (inquiry) throws(Fault) in
                try handshake(inquiry, .tls10)
            },
        ]
    }

    private static func asks(under other: SchemeName, _ inquiry: Inquiry) throws(Fault) -> Finding {
        guard inquiry.subject.credentials.key.publicKey == nil else {
            return .notApplicable("the key is one of a pair, and the scheme has shared secrets")
        }
        var subject = inquiry.subject
        subject.scheme = other
        if other == .formMD5 {
            // form-md5 has no way to say nothing about them.
            if subject.credentials.platform.isEmpty { subject.credentials.platform = "ios" }
            if subject.credentials.version.isEmpty { subject.credentials.version = "1.0" }
        }
        var draft = subject.draft(.withBody)
        if inquiry.subject.place == .ownRoute, other == .formMD5 {
            draft.set("Content-Type", "application/x-www-form-urlencoded")
            draft.body = Array("selftest=1".utf8)
        }
        let said = inquiry.said(try inquiry.reply(to: try inquiry.sign(draft, by: subject).wire, draft.method))
        return inquiry.judged(said, [.schemeNotAllowed, .unknownKey, .badSignature, .malformed, .unsigned])
    }

    /// That the connection stands says so: nothing was sent before.
    private static func certificate(_ inquiry: Inquiry) throws(Fault) -> Finding {
        guard inquiry.subject.origin.security == .tls else { return withoutTLS }
        _ = try inquiry.connect()
        return Finding(.held, expected: "a certificate that the given trust accepts", came: "it was accepted")
    }

    private static let withoutTLS = Finding.notApplicable("the URL is http: there is no TLS to do without")

    private static func plainHTTP(_ inquiry: Inquiry) throws(Fault) -> Finding {
        guard inquiry.subject.origin.security == .tls else { return withoutTLS }
        let draft = inquiry.draft(.bare)
        let connection = try Link.openBare(to: inquiry.subject)
        inquiry.send(draft.wire, on: connection)
        var reader = MessageReader(connection)
        let reply = inquiry.next(to: draft.method, from: &reader)
        let isKept: Bool
        if case .response(let response) = reply { isKept = response.status >= 300 } else { isKept = true }
        return .judged(isKept, expected: "no answer, a refusal, or a redirection", came: "\(Said(reply))")
    }

    private static func handshake(_ inquiry: Inquiry, _ version: ClientHello.Version) throws(Fault) -> Finding {
        guard inquiry.subject.origin.security == .tls else { return withoutTLS }
        let connection = try Link.openBare(to: inquiry.subject)
        inquiry.send(ClientHello(version, to: inquiry.subject.origin.host).bytes, on: connection)
        let reply = ClientHello.Reply(connection)
        return .judged(reply != .goesOn, expected: "the handshake ends", came: "\(reply)")
    }
}
