import CountersignMemory
import CountersignTestServer
import CountersignTransport
import CountersignTrust
import Testing
import Waiting

/// Each server, and what is decided of it, at a real handshake; on a refusal the server has seen no byte of
/// the request.
@Suite(.timeLimit(.minutes(15)))
struct CertificateTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var identity: @Sendable (Authorities) throws -> TestServer.Credentials
        var policy: @Sendable (Authorities, TestServer.Credentials) throws -> Trust.Policy = { _, _ in .system
        }
        var expected: [Trust.Verdict.Reason] = []
        var testDescription: String { name }
    }

    private static func chain(
        _ hosts: [String] = ["api.example.com"],
        _ change: @escaping @Sendable (inout CertificateRequest) -> Void = { _ in }
    ) -> @Sendable (Authorities) throws -> TestServer.Credentials {
        { TestServer.Credentials([try $0.server(hosts, change), $0.middle]) }
    }

    private static func selfSigned(
        _ change: @escaping @Sendable (inout CertificateRequest) -> Void = { _ in }
    ) -> @Sendable (Authorities) throws -> TestServer.Credentials {
        { authorities in
            var request = CertificateRequest("Alone", hosts: ["api.example.com"], at: authorities.time)
            change(&request)
            return TestServer.Credentials([try IssuedCertificate.selfSigned(request)])
        }
    }

    /// The certificate of a man in the middle: issued for the server's name by another authority.
    private static let middleman: @Sendable (Authorities) throws -> TestServer.Credentials = {
        TestServer.Credentials([try $0.server(by: $0.other)])
    }

    private static func stapled(
        _ standing: Staple.CertificateStatus,
        by signer: @escaping @Sendable (Authorities) -> IssuedCertificate = { $0.middle },
        at difference: Int64 = 0
    ) -> @Sendable (Authorities) throws -> TestServer.Credentials {
        { authorities in
            let leaf = try authorities.server()
            let staple = try Staple.make(
                standing, of: leaf, issuedBy: authorities.middle, signedBy: signer(authorities),
                at: authorities.time + difference)
            return TestServer.Credentials([leaf, authorities.middle], staple: staple)
        }
    }

    private static let ownPin: @Sendable (Authorities, TestServer.Credentials) throws -> Trust.Policy = {
        try .pins([pin($1.chain[0])], backups: [strangePin])
    }
    private static let otherPin: @Sendable (Authorities, TestServer.Credentials) throws -> Trust.Policy = {
        authorities, _ in
        try .pins([pin(authorities.other)], backups: [strangePin])
    }
    private static let ownCertificate:
        @Sendable (Authorities, TestServer.Credentials) throws -> Trust.Policy = {
            try .certificates([$1.chain[0].certificate])
        }

    private static let day: Int64 = 86_400

    /// Of TLS records. Source: RFC 8446 §5.1.
    private static let handshake: UInt8 = 22
    private static let applicationData: UInt8 = 23

    /// Among them the twelve that every client meets: good, expired, not yet valid, for another host,
    /// self-signed with and without its pin, good but unpinned, a middleman's from an authority that the
    /// machine trusts, met by the backup, revoked by a staple, in a chain that is not asked about, and, in a
    /// test of its own, where the rule only reports.
    static let cases: [Case] = [
        Case(name: "good", identity: chain()),
        Case(name: "good, by a wildcard", identity: chain(["*.example.com"])),
        Case(
            name: "expired",
            identity: chain { $0.validity = ($0.validity.lowerBound - 40 * day)...($0.validity.lowerBound) },
            expected: [.chain(.expired)]),
        Case(
            name: "not yet valid",
            identity: chain { $0.validity = ($0.validity.lowerBound + 2 * day)...($0.validity.upperBound) },
            expected: [.chain(.notYetValid)]),
        Case(
            name: "for another host", identity: chain(["www.example.com"]),
            expected: [.wrongHost(certificateIsFor: ["www.example.com"])]),
        Case(
            name: "a name in the subject only", identity: chain([]) { $0.subject = "api.example.com" },
            expected: [.wrongHost(certificateIsFor: [])]),
        Case(name: "self-signed, pinned by key", identity: selfSigned(), policy: ownPin),
        Case(name: "self-signed, pinned as a certificate", identity: selfSigned(), policy: ownCertificate),
        Case(
            name: "self-signed and expired, pinned", identity: selfSigned { $0.validity = 1...1_000_000_000 },
            policy: ownPin, expected: [.chain(.expired)]),
        Case(
            name: "self-signed for another host, pinned",
            identity: selfSigned { $0.hosts = ["www.example.com"] },
            policy: ownPin, expected: [.wrongHost(certificateIsFor: ["www.example.com"])]),
        Case(name: "self-signed, unpinned", identity: selfSigned(), expected: [.chain(.selfSigned)]),
        Case(
            name: "self-signed, others pinned", identity: selfSigned(), policy: otherPin,
            expected: [.chain(.selfSigned)]),
        Case(name: "pinned by its own key", identity: chain(), policy: ownPin),
        Case(name: "good, but unpinned", identity: chain(), policy: otherPin, expected: [.pinNotMet]),
        Case(name: "a middleman whom the machine trusts", identity: middleman, expected: []),
        Case(
            name: "a middleman whom the machine trusts, our key pinned", identity: middleman,
            policy: { authorities, _ in try .pins([pin(authorities.root)], backups: [strangePin]) },
            expected: [.pinNotMet]),
        Case(
            name: "a middleman who shows our pinned authority as well",
            identity: { TestServer.Credentials([try $0.server(by: $0.other), $0.middle, $0.root]) },
            policy: { authorities, _ in try .pins([pin(authorities.root)], backups: [pin(authorities.middle)])
            },
            expected: [.pinNotMet]),
        Case(
            name: "met by the backup", identity: chain(),
            policy: { try .pins([strangePin], backups: [pin($1.chain[0])]) }),
        Case(
            name: "met by the certificate between", identity: chain(),
            policy: { authorities, _ in try .pins([pin(authorities.middle)], backups: [strangePin]) }),
        Case(
            name: "met by the authority, which the server does not show", identity: chain(),
            policy: { authorities, _ in try .pins([pin(authorities.root)], backups: [strangePin]) }),
        Case(
            name: "an authority of one's own, pinned as a certificate",
            identity: { authorities in
                var request = CertificateRequest("Private Root", at: authorities.time)
                request.role = .authority
                let root = try IssuedCertificate.selfSigned(request)
                return TestServer.Credentials([try authorities.server(by: root), root])
            }, policy: { try .certificates([$1.chain[1].certificate]) }),
        Case(
            name: "good, but another certificate is pinned", identity: chain(),
            policy: { authorities, _ in try .certificates([authorities.other.certificate]) },
            expected: [.certificateNotPinned(.noPathToAuthority)]),
        Case(name: "stapled: good", identity: stapled(.good)),
        Case(name: "stapled: revoked", identity: stapled(.revoked), expected: [.revoked]),
        Case(
            name: "stapled: revoked, by a pinned authority of one's own",
            identity: { authorities in
                var request = CertificateRequest("Private Root", at: authorities.time)
                request.role = .authority
                let root = try IssuedCertificate.selfSigned(request)
                let leaf = try authorities.server(by: root)
                let staple = try Staple.make(
                    .revoked, of: leaf, issuedBy: root, signedBy: root, at: authorities.time)
                return TestServer.Credentials([leaf, root], staple: staple)
            }, policy: { try .certificates([$1.chain[1].certificate]) }, expected: [.revoked]),
        Case(
            name: "stapled: revoked, and pinned", identity: stapled(.revoked), policy: ownPin,
            expected: [.revoked]),
        Case(
            name: "stapled: good, says somebody else", identity: stapled(.good, by: { $0.other }),
            expected: [.badStaple("not signed by the certificate's authority")]),
        Case(
            name: "stapled: good, a month ago", identity: stapled(.good, at: -30 * day),
            expected: [.badStaple("out of date")]),
        Case(
            name: "demands a staple, and has none", identity: chain { $0.role = .serverWithStaple },
            expected: [.badStaple("the certificate demands one, and there is none")]),
        Case(
            name: "the one between left out", identity: { TestServer.Credentials([try $0.server()]) },
            expected: [.chain(.noPathToAuthority)]),
        Case(name: "a weak key", identity: chain { $0.key = .rsa(1024) }, expected: [.chain(.tooWeak)]),
        Case(
            name: "a weak key, self-signed and pinned", identity: selfSigned { $0.key = .rsa(1024) },
            policy: ownPin,
            expected: [.chain(.tooWeak)]),
        Case(
            name: "a client's certificate", identity: chain { $0.role = .client },
            expected: [.chain(.notForServers)]),
        Case(
            name: "issued by a server",
            identity: { authorities in
                let server = try authorities.server(["www.example.com"])
                return TestServer.Credentials([
                    try authorities.server(by: server) { $0.subject = "Issued by a server" }, server,
                    authorities.middle,
                ])
            }, expected: [.chain(.notForServers)]),
        Case(
            name: "self-signed, but nothing is asked",
            identity: selfSigned { $0.hosts = ["www.example.com"] },
            policy: { _, _ in .acceptsAnyServerAndSoAnyAttacker }),
        Case(
            name: "for another host, which is not asked", identity: chain(["www.example.com"]),
            policy: { _, _ in .system.withoutCheckingTheHostName() }),
        Case(
            name: "expired, which is not asked, and pinned",
            identity: chain { $0.validity = 1...1_000_000_000 },
            policy: { try ownPin($0, $1).withoutCheckingTheChain() }),
        Case(
            name: "a pinned authority shown beside, where no chain is asked",
            identity: { TestServer.Credentials([try $0.server(by: $0.other), $0.root]) },
            policy: { authorities, _ in
                try .pins([pin(authorities.root)], backups: [strangePin]).withoutCheckingTheChain()
            }, expected: [.serverKeyNotPinned]),
        Case(
            name: "a pinned authority's certificate, where no chain is asked", identity: chain(),
            policy: { authorities, _ in
                try .certificates([authorities.root.certificate]).withoutCheckingTheChain()
            }, expected: [.serverCertificateNotPinned]),
        Case(
            name: "all of: both hold", identity: chain(),
            policy: { try .all([.system, ownPin($0, $1)]) }),
        Case(
            name: "all of: one does not", identity: chain(),
            policy: { try .all([ownPin($0, $1), otherPin($0, $1)]) }, expected: [.pinNotMet]),
        Case(
            name: "a check of one's own", identity: chain(),
            policy: { _, _ in .custom("mine") { $0.served.count == 2 ? .refuse("two") : .accept } },
            expected: [.custom(name: "mine", reason: "two")]),
        Case(
            name: "a check of one's own behind a chain that fails", identity: selfSigned(),
            policy: { _, _ in .custom("mine") { _ in .accept } },
            expected: [.customNotReached(name: "mine", .selfSigned)]),
    ]

    /// Over both versions of TLS: they send certificates and staples in other orders, and TLS 1.2 shows on
    /// the wire what a record is.
    @Test(arguments: cases, [TestServer.Credentials.Version.tls12, .tls13])
    func verdict(_ test: Case, _ version: TestServer.Credentials.Version) async throws {
        let authorities = try Authorities.shared.get()
        var identity = try test.identity(authorities)
        identity.newest = version
        let server = try TestServer(.tls(identity)) { connection in
            while connection.readHead() != nil { connection.answer() }
        }
        defer { server.stop() }
        let policy = try test.policy(authorities, identity)
        let trust = Trust([try .host("**.example.com", policy)], others: .refused)
        let transport = try HTTPTransport(trust: trust, options: authorities.options)
        let result = await outcome(
            transport, OutgoingRequest("GET", origin: try server.origin(), target: "/"))
        guard !test.expected.isEmpty else {
            #expect(try result.get() == 200)
            server.stop()
            await until("the end of the connection") { server.tally.closed == 1 }
            // What a refusal must not show is seen where there is none.
            #expect(server.tally.records[Self.applicationData, default: 0] > 0)
            return
        }
        guard case .failure(let error) = result, case .untrusted(let verdict) = error.cause else {
            Issue.record("not refused: \(result)")
            return
        }
        #expect(verdict.reasons == test.expected)
        #expect(verdict.decision == .refused)
        #expect(error.fate == .notSent)
        // A refusal says which keys were served, and which were expected.
        #expect(verdict.served == identity.chain.map(\.certificate.pin))
        #expect(verdict.expected == policy.pins)
        // The socket has seen a handshake, or its beginning, and nothing after it.
        await until("the end of the connection") { server.tally.closed == 1 }
        #expect(server.tally.connections == 1 && server.tally.received == 0)
        #expect(server.tally.records[Self.handshake, default: 0] > 0)
        #expect(server.tally.records[Self.applicationData] == nil, "\(server.tally.records)")
    }

    /// In a resumed session the server sends no certificate, and the pins would not be checked. So each
    /// connection performs a full handshake.
    @Test(arguments: [TestServer.Credentials.Version.tls12, .tls13])
    func noSessionIsResumed(_ version: TestServer.Credentials.Version) async throws {
        let authorities = try Authorities.shared.get()
        var identity = TestServer.Credentials([try authorities.server(), authorities.middle])
        identity.newest = version
        let server = try TestServer(.tls(identity)) { connection in
            // The connection ends with its first response, so the next request needs another one.
            if connection.readHead() != nil { connection.answer(fields: "Connection: close\r\n") }
        }
        defer { server.stop() }
        let transport = try HTTPTransport(
            trust: Trust([], others: .system), options: authorities.options)
        for _ in 0..<3 {
            let request = OutgoingRequest("GET", origin: try server.origin(), target: "/")
            #expect(try await outcome(transport, request).get() == 200)
        }
        #expect(server.tally.handshakes == 3)
        #expect(server.tally.resumptions == 0)
    }

    @Test func othersAreRefusedOrGoByTheSystem() async throws {
        let authorities = try Authorities.shared.get()
        let identity = TestServer.Credentials([
            try authorities.server(["elsewhere.test"]), authorities.middle,
        ])
        let server = try TestServer(.tls(identity)) { if $0.readHead() != nil { $0.answer() } }
        defer { server.stop() }
        let rule = try Trust.Rule.host("**.example.com", .system)
        let request = OutgoingRequest("GET", origin: try server.origin("elsewhere.test"), target: "/")
        let closed = try HTTPTransport(trust: Trust([rule], others: .refused), options: authorities.options)
        guard case .failure(let error) = await outcome(closed, request),
            case .untrusted(let verdict) = error.cause
        else {
            Issue.record("not refused")
            return
        }
        #expect(verdict.reasons == [.hostNotNamed] && server.tally.received == 0)
        let open = try HTTPTransport(trust: Trust([rule], others: .system), options: authorities.options)
        #expect(try await outcome(open, request).get() == 200)
    }

    @Test func reportOnlyReportsAndStillAsksTheSystem() async throws {
        let authorities = try Authorities.shared.get()
        let seen = Locked<[Trust.Verdict]>([])
        var options = try authorities.options
        options.observe = { verdict in seen.with { $0.append(verdict) } }
        let trust = Trust(
            [
                try .host(
                    "api.example.com", pins: [pin(authorities.other)], backups: [strangePin],
                    mode: .reportOnly)
            ],
            others: .refused)
        let transport = try HTTPTransport(trust: trust, options: options)
        let good = TestServer.Credentials([try authorities.server(), authorities.middle])
        let server = try TestServer(.tls(good)) { if $0.readHead() != nil { $0.answer() } }
        defer { server.stop() }
        #expect(
            try await outcome(transport, OutgoingRequest("GET", origin: try server.origin(), target: "/"))
                .get() == 200)
        #expect(seen.with { $0.map(\.decision) } == [.reported])
        #expect(seen.with { $0.first?.reasons } == [.pinNotMet])
        #expect(seen.with { $0.first?.expected.map(\.description) } == [pin(authorities.other), strangePin])

        let alone = try IssuedCertificate.selfSigned(
            CertificateRequest("Alone", hosts: ["api.example.com"], at: authorities.time))
        let stranger = try TestServer(.tls(TestServer.Credentials([alone]))) {
            if $0.readHead() != nil { $0.answer() }
        }
        defer { stranger.stop() }
        guard
            case .failure(let error) = await outcome(
                transport, OutgoingRequest("GET", origin: try stranger.origin(), target: "/")),
            case .untrusted = error.cause
        else {
            Issue.record("a stranger was let in because the rule only reports")
            return
        }
        #expect(stranger.tally.received == 0)
    }
}
