import CCrypto
import CountersignTestServer
import Foundation
import Testing

@testable import CountersignLab

@Suite struct LeakedKeyTests {
    private let order = RawRequest(
        method: "POST", target: "/transfer", fields: [("Host", "bank.test")],
        body: Array("to=bob&amount=10".utf8))

    // Made once, since RSA key generation takes most of the time.
    private static let rsa = issued(.rsa(2048))
    private static let elliptic = issued(.p256)

    private static func issued(_ key: CertificateRequest.Key) -> Result<IssuedCertificate, any Error> {
        var request = CertificateRequest("bank.test", hosts: ["bank.test"], at: Int64(time(nil)))
        request.key = key
        return Result { try IssuedCertificate.selfSigned(request) }
    }

    /// The recording of one order, and the server's key.
    private func recorded(
        _ key: Result<IssuedCertificate, any Error>, through identity: (inout TestServer.Credentials) -> Void
    ) async throws -> (recording: Recording, key: String) {
        let issued = try key.get()
        var shown = TestServer.Credentials([issued])
        identity(&shown)
        let server = try echo(.tls(shown))
        let network = try Network(security: .tls(authority: issued, host: "bank.test"))
        network.setServerPort(server.port)
        let tap = network.listen()
        let answer = try await victim(of: network, order)
        #expect(answer.text == "POST /transfer: to=bob&amount=10")
        return (tap.stop(), String(decoding: try issued.pem().key, as: UTF8.self))
    }

    @Test(
        arguments: ["AES128-GCM-SHA256", "AES256-GCM-SHA384"],
        [TestServer.Credentials.MasterSecret.extended, .ofRandoms])
    func rsaKeyExchangeIsRead(suite: String, masterSecret: TestServer.Credentials.MasterSecret) async throws {
        let (recording, key) = try await recorded(Self.rsa) {
            $0.newest = .tls12
            $0.suites = suite
            $0.masterSecret = masterSecret
        }
        #expect(!recording.contains("bob"))
        let results = try TLSDecryptor(pem: key).decrypt(recording)
        let opened = Recording(try results.map { try $0.get() })
        #expect(opened.exchanges.map(\.request.body) == [order.body])
        #expect(opened.exchanges.first?.response?.text == "POST /transfer: to=bob&amount=10")
    }

    /// Apps resume TLS sessions: the second connection has no key exchange.
    @Test func resumedSessionsAreReadWithTheFirstOnes() throws {
        let issued = try Self.rsa.get()
        var identity = TestServer.Credentials([issued])
        identity.newest = .tls12
        identity.suites = "AES128-GCM-SHA256"
        let server = try echo(.tls(identity))
        let network = try Network(security: .tls(authority: issued, host: "bank.test"))
        network.setServerPort(server.port)
        let tap = network.listen()
        let session = try resumableSession(network.publicPort, resuming: nil)
        defer { SSL_SESSION_free(session) }
        SSL_SESSION_free(try resumableSession(network.publicPort, resuming: session))

        let recording = tap.stop()
        let key = try TLSDecryptor(pem: String(decoding: issued.pem().key, as: UTF8.self))
        let opened = Recording(try key.decrypt(recording).map { try $0.get() })
        #expect(opened.exchanges.map(\.request.target) == ["/transfer", "/transfer"])
        #expect(key.decrypt(recording.connections[1]) == .failure(.resumesUnknownSession))
    }

    /// Sends an order, and returns the TLS session for resumption.
    private func resumableSession(_ port: UInt16, resuming session: OpaquePointer?) throws -> OpaquePointer? {
        let side = try TLSEndpoint.client()
        let tls = try #require(SSL_new(side.pointer))
        SSL_set_fd(tls, try Socket.connect(to: "127.0.0.1", port: port))
        if let session { SSL_set_session(tls, session) }
        #expect(SSL_connect(tls) == 1)
        #expect(SSL_session_reused(tls) == (session == nil ? 0 : 1))
        let link = RawConnection(SSL_get_fd(tls), tls: tls)
        link.write(order.bytes)
        var reader = MessageReader(link)
        #expect(try reader.response(to: "POST").message.status == 200)
        // OpenSSL resumes only sessions that were shut down properly.
        SSL_shutdown(tls)
        return SSL_get1_session(tls)
    }

    @Test func anotherServersKeyOpensNothing() async throws {
        let (recording, _) = try await recorded(Self.rsa) {
            $0.newest = .tls12
            $0.suites = "AES128-GCM-SHA256"
        }
        let another = try Self.issued(.rsa(2048)).get()
        let results = try TLSDecryptor(pem: String(decoding: another.pem().key, as: UTF8.self)).decrypt(
            recording)
        #expect(results == [.failure(.isOfAnotherKey)])
    }

    /// An elliptic key on the curve of the client's share can be tried; others cannot.
    @Test(arguments: [
        ("ECDHE-RSA-AES128-GCM-SHA256", TestServer.Credentials.Version.tls12),
        ("ECDHE-ECDSA-AES256-GCM-SHA384", .tls12), ("ECDHE-ECDSA-CHACHA20-POLY1305", .tls12), ("", .tls13),
    ])
    func forwardSecrecyHolds(suite: String, newest: TestServer.Credentials.Version) async throws {
        let (recording, key) = try await recorded(suite.contains("ECDSA") ? Self.elliptic : Self.rsa) {
            $0.newest = newest
            $0.suites = suite
        }
        #expect(recording.connections.count == 1)
        let results = try TLSDecryptor(pem: key).decrypt(recording)
        let kind = suite.contains("ECDSA") ? "EC" : "RSA"
        #expect(
            results == [
                .failure(
                    .needsEphemeralKey(tried: "an \(kind) key agrees on nothing with a share on group 29"))
            ])
    }

    /// The published trace of TLS 1.3: with the ephemeral key, which a recording never contains, all of it is
    /// decrypted. So the attempt with a certificate's key would succeed if it could.
    @Test func theEphemeralKeyWouldOpenIt() throws {
        let trace = try Trace.load()
        let opened = try TLSDecryptor(pem: trace.ephemeralKey).decrypt(trace.conversation).get()
        #expect(
            opened == RecordedConnection(client: Trace.bytes(trace.data), server: Trace.bytes(trace.data)))
    }

    @Test func anotherKeyOnTheSameCurveIsTriedInVain() throws {
        let trace = try Trace.load()
        let wrong = """
            -----BEGIN PRIVATE KEY-----
            MC4CAQAwBQYDK2VuBCIEIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g
            -----END PRIVATE KEY-----
            """
        #expect(
            try TLSDecryptor(pem: wrong).decrypt(trace.conversation)
                == .failure(
                    .needsEphemeralKey(
                        tried: "what the key agrees on with the client's share does not open the first record"
                    )))
    }

    /// Truncated or changed recordings neither trap nor yield other contents. Steps of 61 and 37 cover every
    /// part of messages and records.
    @Test func whatIsCutOrChangedIsReadAsFarAsItGoesOrNotAtAll() throws {
        let trace = try Trace.load()
        let key = try TLSDecryptor(pem: trace.ephemeralKey)
        let whole = trace.conversation.server
        var damaged = stride(from: 0, to: whole.count, by: 61).map { Array(whole.prefix($0)) }
        for index in stride(from: 0, to: whole.count, by: 37) {
            var changed = whole
            changed[index] ^= 0x41
            damaged.append(changed)
        }
        var unreadable = 0
        for server in damaged {
            switch key.decrypt(RecordedConnection(client: trace.conversation.client, server: server)) {
            case .failure: unreadable += 1
            case .success(let opened):
                #expect(opened.client == Trace.bytes(trace.data))
                #expect(Trace.bytes(trace.data).starts(with: opened.server))
            }
        }
        #expect(damaged.count - unreadable < 8, "only what comes behind the handshake may be lost")
    }

    @Test func plainHTTPIsNotTLS() throws {
        let result = try TLSDecryptor(pem: Trace.load().ephemeralKey).decrypt(
            RecordedConnection(client: order.bytes))
        #expect(result == .failure(.noHandshake("this is not TLS")))
    }

    @Test func whatIsNoKeyIsRefused() {
        #expect(throws: LabError.self) {
            try TLSDecryptor(pem: "-----BEGIN PRIVATE KEY-----\nno\n-----END PRIVATE KEY-----")
        }
    }
}

/// RFC 8448 §3, in `Vectors/lab`.
private struct Trace: Decodable {
    var client: String
    var server: String
    var ephemeralKey: String
    var data: String

    var conversation: RecordedConnection {
        RecordedConnection(client: Trace.bytes(client), server: Trace.bytes(server))
    }

    static func load() throws -> Trace {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../../Vectors/lab")
        return try JSONDecoder().decode(
            Trace.self, from: Data(contentsOf: folder.appending(path: "tls13-handshake.json")))
    }

    static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
