import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignWire

extension SelfTestCheck {
    /// The authority's public routes.
    static func routes(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        [
            SelfTestCheck(
                "time", family: .routes, sent: "GET \(subject.prefix)/time with a nonce", run: time),
            SelfTestCheck(
                "unknown-route", family: .routes,
                sent: "a signed request for a route of the authority's that is not there"
            ) {
                (inquiry) throws(OperationalError) in
                var draft = Draft(
                    method: "GET", target: Array("\(inquiry.subject.prefix)/selftest-nowhere".utf8),
                    authority: inquiry.subject.origin.authority, transport: inquiry.subject.transport)
                draft = try inquiry.sign(draft)
                let reply = try inquiry.reply(to: draft.wire, method: draft.method)
                guard case .response(let response) = reply, response.status == 404 else {
                    return .judged(false, expected: "404", observed: "\(ReplyOutcome(reply))")
                }
                return .judged(true, expected: "404", observed: "404")
            },
        ]
    }

    /// Seconds by which two machines' clocks may differ and signatures still be fresh, with some room.
    private static let clockDifference: Int64 = 30

    private static func time(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        let nonce = Nonce.make(for: .messageSignatures)
        let draft = Draft(
            method: "GET", target: Array("\(inquiry.subject.prefix)/time?nonce=\(nonce)".utf8),
            authority: inquiry.subject.origin.authority, transport: inquiry.subject.transport)
        let expected =
            "the nonce, a time within \(clockDifference) s of this machine's"
            + (inquiry.subject.authorityKey == nil ? "" : ", signed by the authority")
        guard case .response(let response) = try inquiry.reply(to: draft.wire, method: "GET"),
            response.status == 200,
            let document = try? JSONReader.read(response.body)
        else { return .judged(false, expected: expected, observed: "no such answer") }
        guard document.root["nonce"]?.string == nonce else {
            return .judged(false, expected: expected, observed: "another nonce, or none")
        }
        guard let member = document.root["time"],
            let seconds = document.integer(member, in: 0...253_402_300_799)
        else {
            return .judged(false, expected: expected, observed: "the nonce, and no time")
        }
        let difference = Int64(seconds) - inquiry.now
        let came = "the nonce, and a time \(difference) s from this machine's"
        guard abs(difference) <= clockDifference else {
            return .judged(false, expected: expected, observed: came)
        }
        guard let key = try AuthorityVerifier(inquiry.subject) else {
            return SelfTestResult(
                .held, expected: expected,
                observed: "\(came); its signature was not looked at: no --authority-key")
        }
        let finding = key.status(of: response, to: Request(), bound: .content)
        return .judged(finding == .holds, expected: expected, observed: "\(came); \(finding)")
    }
}

extension SelfTestCheck {
    /// Checks that the authority signs its responses, and that a signature is bound to one request.
    static func answers(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        [
            SelfTestCheck(
                "answer-signed", family: .routes,
                sent: "a request that is refused, for the refusal's signature"
            ) {
                (inquiry) throws(OperationalError) in
                try verifyResponse(with: inquiry, expected: "signed by the authority") { (look) in look.own }
            },
            SelfTestCheck(
                "answer-bound", family: .routes,
                sent: "the same, held against another request that was refused"
            ) {
                (inquiry) throws(OperationalError) in
                try verifyResponse(with: inquiry, expected: "no signature for that one") { (look) in
                    if case .wrong = look.other {
                        look.own
                    } else {
                        .wrong("it holds for another request, too")
                    }
                }
            },
            SelfTestCheck(
                "answer-whole", family: .routes, sent: "the same, with another status, and with another body"
            ) {
                (inquiry) throws(OperationalError) in
                try verifyResponse(with: inquiry, expected: "no signature for those") { (look) in
                    if case .wrong = look.changed {
                        look.own
                    } else {
                        .wrong("it holds for a changed answer, too")
                    }
                }
            },
        ]
    }

    /// The signature of one refusal, verified for its own request, for another request, and with a changed
    /// response.
    private struct ResponseSignatures {
        let own: AuthorityVerifier.SignatureStatus
        let other: AuthorityVerifier.SignatureStatus
        /// The better of the two results: neither may verify.
        let changed: AuthorityVerifier.SignatureStatus
    }

    private static func verifyResponse(
        with inquiry: SelfTestClient, expected: String,
        judge: (ResponseSignatures) -> AuthorityVerifier.SignatureStatus
    ) throws(OperationalError) -> SelfTestResult {
        guard inquiry.subject.scheme.selfTest?.signsResponses == true else {
            return .notApplicable("\(inquiry.subject.scheme.rawValue) has no place for signed answers")
        }
        guard let verifier = try AuthorityVerifier(inquiry.subject) else {
            return .notApplicable("no --authority-key to verify answers with")
        }
        let draft = try inquiry.signed(.withBody, at: inquiry.now - inquiry.subject.freshSeconds - 60)
        let another = try inquiry.signed(.withBody, at: inquiry.now - inquiry.subject.freshSeconds - 60)
        guard case .response(let response) = try inquiry.reply(to: draft.wire, method: draft.method) else {
            return .judged(false, expected: expected, observed: "no answer")
        }
        var changed = response
        changed.status = response.status == 400 ? 401 : 400
        var longer = response
        longer.body.append(0x20)
        let withStatus = verifier.status(of: changed, to: draft.request())
        let finding = judge(
            ResponseSignatures(
                own: verifier.status(of: response, to: draft.request()),
                other: verifier.status(of: response, to: another.request()),
                changed: withStatus == .holds ? withStatus : verifier.status(of: longer, to: draft.request()))
        )
        return .judged(
            finding == .holds, expected: expected, observed: finding == .holds ? "as expected" : "\(finding)")
    }
}

/// Verifies that a response was signed by the authority, and for which request.
struct AuthorityVerifier {
    enum SignatureStatus: Equatable, CustomStringConvertible {
        case holds
        case unsigned
        case wrong(String)

        var description: String {
            switch self {
            case .holds: "signed by the authority"
            case .unsigned: "not signed"
            case .wrong(let detail): "wrongly signed: \(detail)"
            }
        }
    }

    private let verify: ResponseVerifier

    /// Nil if the operator gave no authority key.
    init?(_ subject: SelfTestSubject) throws(OperationalError) {
        guard let current = try AuthorityVerifier.key(subject.authorityKey) else { return nil }
        verify = ResponseVerifier(
            [:],
            authority: AuthorityKeys(
                current: current, next: try AuthorityVerifier.key(subject.nextAuthorityKey)))
    }

    private static func key(_ bytes: [UInt8]?) throws(OperationalError) -> SigningKey? {
        guard let bytes else { return nil }
        guard let key = try? PublicKey(ed25519: bytes) else {
            throw OperationalError(.usage, message: "the authority key: expected an Ed25519 public key")
        }
        return SigningKey(key)
    }

    func status(
        of response: RawResponse, to request: Request, bound binding: MessageSignatures.Binding = .request
    )
        -> SignatureStatus
    {
        let fields = response.fields.lines.map { Draft.Field(name: $0.name, value: $0.value) }
        let response = Response(status: response.status, fields: fields, body: response.body)
        do {
            return try verify(response, to: request, bound: binding) == .unsigned ? .unsigned : .holds
        } catch {
            return .wrong(error.detail.isEmpty ? error.code.name : error.detail)
        }
    }
}
