import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignOpaque

@Suite struct OpaqueVectorTests {
    private let stretching = KeyStretchingFunction.noneForTheVectorsOfTheStandardOnly

    @Test("registration of RFC 9807, appendix C.1", arguments: try Vector.load("opaque/real.json"))
    func registration(_ vector: Vector) throws {
        let keys = try vector.serverKeys()
        let credential = try vector.bytes("credential_identifier")
        #expect(keys.publicKey.bytes == (try vector.bytes("server_public_key")))
        #expect(try keys.oprfKey(credential: credential).bytes.exposed == vector.bytes("oprf_key"))

        let random = ScriptedRandom([
            ScriptedRandom.wide(try vector.bytes("blind_registration")), try vector.bytes("envelope_nonce"),
        ])
        let client = try ClientRegistration(vector.password("password"), random: random)
        let request = client.request
        #expect(request.bytes == (try vector.bytes("registration_request")))
        let response = try keys.respond(to: request, credential: credential)
        #expect(response.bytes == (try vector.bytes("registration_response")))

        let registered = try client.finish(
            response, as: vector.parties, stretching: stretching, random: random)
        #expect(random.isUsedUp)
        #expect(registered.record.clientPublicKey.bytes == (try vector.bytes("client_public_key")))
        #expect(registered.record.envelope.bytes == (try vector.bytes("envelope")))
        #expect(registered.record.bytes.exposed == (try vector.bytes("registration_upload")))
        #expect(registered.exportKey.exposed == (try vector.bytes("export_key")))
        #expect(registered.serverPublicKey == keys.publicKey)
    }

    @Test("the client's intermediates", arguments: try Vector.load("opaque/real.json"))
    func intermediates(_ vector: Vector) throws {
        let response = try RegistrationResponse(vector.bytes("registration_response"))
        let randomized = try RandomizedPassword(
            vector.password("password"), blind: vector.scalar("blind_registration"),
            evaluated: response.evaluated,
            stretching: stretching)
        #expect(randomized.bytes.exposed == (try vector.bytes("randomized_password")))
        let envelope = try #require(Envelope(vector.bytes("envelope")))
        let keys = try EnvelopeKeys(randomized, nonce: envelope.nonce)
        #expect(keys.authKey.exposed == (try vector.bytes("auth_key")))
        #expect(keys.exportKey.exposed == (try vector.bytes("export_key")))
        #expect(keys.client.publicKey.bytes == (try vector.bytes("client_public_key")))
        let tag = try keys.tag(serverPublicKey: vector.bytes("server_public_key"), parties: vector.parties)
        #expect(tag.equals(envelope.tag))
        let upload = try vector.bytes("registration_upload")
        #expect(randomized.maskingKey.exposed == Array(upload[32..<96]))
    }

    @Test("the client's login of RFC 9807, appendix C.1", arguments: try Vector.load("opaque/real.json"))
    func clientLogin(_ vector: Vector) throws {
        let random = ScriptedRandom([
            ScriptedRandom.wide(try vector.bytes("blind_login")), try vector.bytes("client_nonce"),
            try vector.bytes("client_keyshare_seed"),
        ])
        let (password, context) = (try vector.password("password"), try vector.context())
        let ke2 = try KE2(vector.bytes("ke2"))

        let client = try ClientLogin(password, random: random)
        let ke1 = client.ke1
        let loggedIn = try client.finish(ke2, as: vector.parties, context: context, stretching: stretching)

        #expect(random.isUsedUp)
        #expect(ke1.bytes == (try vector.bytes("ke1")))
        #expect(loggedIn.ke3.bytes == (try vector.bytes("ke3")))
        #expect(loggedIn.sessionKey.exposed == (try vector.bytes("session_key")))
        #expect(loggedIn.exportKey.exposed == (try vector.bytes("export_key")))
        #expect(loggedIn.serverPublicKey.bytes == (try vector.bytes("server_public_key")))
    }

    @Test("the server's login of RFC 9807, appendix C.1", arguments: try Vector.load("opaque/real.json"))
    func serverLogin(_ vector: Vector) throws {
        let record = try RegistrationRecord(vector.secret("registration_upload"))
        let exchange = try exchange(vector, record)
        #expect(exchange.schedule.handshakeSecret.exposed == (try vector.bytes("handshake_secret")))
        #expect(exchange.schedule.serverMACKey.exposed == (try vector.bytes("server_mac_key")))
        #expect(exchange.schedule.clientMACKey.exposed == (try vector.bytes("client_mac_key")))
        #expect(exchange.ke2.bytes == (try vector.bytes("ke2")))

        let ke3 = try KE3(vector.bytes("ke3"))
        let sessionKey = try ServerLogin(exchange).finish(ke3)
        #expect(sessionKey.exposed == (try vector.bytes("session_key")))
    }

    private func exchange(_ vector: Vector, _ record: RegistrationRecord) throws -> ServerExchange {
        let random = ScriptedRandom([
            try vector.bytes("masking_nonce"), try vector.bytes("server_nonce"),
            try vector.bytes("server_keyshare_seed"),
        ])
        let exchange = try ServerExchange(
            KE1(vector.bytes("ke1")), record: record, credential: vector.bytes("credential_identifier"),
            as: vector.parties, context: vector.context(), keys: vector.serverKeys(), random: random)
        #expect(random.isUsedUp)
        return exchange
    }

    @Test("no such account: RFC 9807, appendix C.2", arguments: try Vector.load("opaque/fake.json"))
    func fake(_ vector: Vector) throws {
        let pair = try KeyPair(privateKey: vector.scalar("client_private_key"))
        #expect(pair.publicKey.bytes == (try vector.bytes("client_public_key")))
        let record = RegistrationRecord.fake(
            clientPublicKey: try vector.element("client_public_key"),
            maskingKey: try vector.secret("masking_key"))
        let exchange = try exchange(vector, record)
        #expect(exchange.ke2.bytes == (try vector.bytes("ke2")))
        let share = try KeyPair(seed: vector.secret("client_keyshare_seed"))
        let ke1 = try KE1(vector.bytes("ke1"))
        #expect(ke1.keyShare == share.publicKey)
    }
}
