import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire

extension SelfTestCheck {
    /// Requests that bypass the signature scheme by weaker means.
    static func downgrade(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        let others = SchemeName.signing.filter { $0 != subject.scheme }
        return others.map { other in
            SelfTestCheck(
                "downgrade-\(other.rawValue)", family: .downgrade,
                sent: "a request signed with the same key under \(other.rawValue)"
            ) {
                (inquiry) throws(OperationalError) in
                try tryScheme(other, with: inquiry)
            }
        } + [
            SelfTestCheck("certificate", family: .downgrade, sent: "a TLS handshake", run: certificate),
            SelfTestCheck(
                "plain-http", family: .downgrade, sent: "HTTP without TLS to the TLS port", run: plainHTTP),
            SelfTestCheck("tls-1.1", family: .downgrade, sent: "a handshake that offers TLS 1.1 at most") {
                (inquiry) throws(OperationalError) in
                try handshake(with: inquiry, version: .tls11)
            },
            SelfTestCheck("tls-1.0", family: .downgrade, sent: "a handshake that offers TLS 1.0 at most") {
                (inquiry) throws(OperationalError) in
                try handshake(with: inquiry, version: .tls10)
            },
        ]
    }

    private static func tryScheme(_ other: SchemeName, with inquiry: SelfTestClient) throws(OperationalError)
        -> SelfTestResult
    {
        guard inquiry.subject.credentials.key.publicKey == nil else {
            return .notApplicable("the key is one of a pair, and the scheme has shared secrets")
        }
        var subject = inquiry.subject
        subject.scheme = other
        other.selfTest?.complete(&subject.credentials)
        var draft = subject.draft(.withBody)
        if inquiry.subject.endpoint == .ownRoute, other.traits.signedParameters == .form {
            draft.setField("Content-Type", to: "application/x-www-form-urlencoded")
            draft.body = Array("selftest=1".utf8)
        }
        let said = inquiry.outcome(
            of: try inquiry.reply(to: try inquiry.sign(draft, by: subject).wire, method: draft.method))
        return inquiry.result(
            of: said, expecting: [.schemeNotAllowed, .unknownKey, .badSignature, .malformed, .unsigned])
    }

    /// An established connection proves it: the certificate is verified in the handshake.
    private static func certificate(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        guard inquiry.subject.origin.security == .tls else { return withoutTLS }
        _ = try inquiry.connect()
        return SelfTestResult(
            .held, expected: "a certificate that the given trust accepts", observed: "it was accepted")
    }

    private static let withoutTLS = SelfTestResult.notApplicable(
        "the URL is http: there is no TLS to do without")

    private static func plainHTTP(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        guard inquiry.subject.origin.security == .tls else { return withoutTLS }
        let draft = inquiry.draft(.bare)
        let connection = try RawConnection.openBare(to: inquiry.subject)
        inquiry.send(draft.wire, on: connection)
        var reader = MessageReader(connection)
        let reply = inquiry.nextReply(to: draft.method, from: &reader)
        let isKept: Bool
        if case .response(let response) = reply { isKept = response.status >= 300 } else { isKept = true }
        return .judged(
            isKept, expected: "no answer, a refusal, or a redirection", observed: "\(ReplyOutcome(reply))")
    }

    private static func handshake(with inquiry: SelfTestClient, version: ClientHello.Version)
        throws(OperationalError) -> SelfTestResult
    {
        guard inquiry.subject.origin.security == .tls else { return withoutTLS }
        let connection = try RawConnection.openBare(to: inquiry.subject)
        inquiry.send(ClientHello(version, to: inquiry.subject.origin.host).bytes, on: connection)
        let reply = ClientHello.Reply(connection)
        return .judged(reply != .goesOn, expected: "the handshake ends", observed: "\(reply)")
    }
}

/// The first message of an old client's handshake, written by hand: libraries of today refuse to offer old
/// versions, and that would say nothing about the server. Source: RFC 4346 §7.4.1.2; RFC 8422 §5.1.
struct ClientHello {
    /// The highest version offered.
    enum Version: UInt8 { case tls10 = 1, tls11 = 2 }

    let bytes: [UInt8]

    init(_ version: Version, to host: Trust.Host) {
        var extensions: [UInt8] = []
        if !host.isAddress {
            let name = Array(host.description.utf8)
            extensions += ClientHello.extensionBlock(
                0, content: ClientHello.counted([0] + ClientHello.counted(name)))
        }
        // P-256 and P-384; uncompressed points.
        extensions += ClientHello.extensionBlock(10, content: ClientHello.counted([0, 23, 0, 24]))
        extensions += ClientHello.extensionBlock(11, content: [1, 0])
        // ECDHE with ECDSA and RSA, then RSA alone: AES-128-CBC-SHA and its like, which all old servers have.
        let suites: [UInt8] = [
            0xC0, 0x09, 0xC0, 0x13, 0xC0, 0x0A, 0xC0, 0x14, 0x00, 0x2F, 0x00, 0x35, 0x00, 0x0A,
        ]
        let body =
            [3, version.rawValue] + SystemRandom().bytes(32) + [0] + ClientHello.counted(suites) + [1, 0]
            + ClientHello.counted(extensions)
        let length = body.count
        let message = [1, 0, UInt8(length >> 8), UInt8(length & 0xFF)] + body
        bytes = [22, 3, 1] + ClientHello.counted(message)
    }

    private static func extensionBlock(_ type: UInt8, content: [UInt8]) -> [UInt8] {
        [0, type] + counted(content)
    }

    /// The bytes with their length before them in two bytes.
    private static func counted(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }

    /// The server's reply.
    enum Reply: Equatable, CustomStringConvertible {
        /// A ServerHello: the server supports that version.
        case goesOn
        /// RFC 4346 §7.2: 70 is protocol_version, 40 handshake_failure.
        case alert(Int)
        case ends
        case silent

        init(_ connection: RawConnection) {
            var bytes: [UInt8] = []
            while bytes.count < 7 {
                switch connection.read() {
                case .bytes(let more): bytes += more
                case .end(let reason):
                    self = reason == RawConnection.timeoutReason ? .silent : .ends
                    return
                }
            }
            self = bytes[0] == 21 ? .alert(Int(bytes[6])) : bytes[0] == 22 ? .goesOn : .ends
        }

        var description: String {
            switch self {
            case .goesOn: "the server goes on with it"
            case .alert(let code): "a TLS alert (\(code))"
            case .ends: "the connection ended"
            case .silent: "nothing"
            }
        }
    }
}
