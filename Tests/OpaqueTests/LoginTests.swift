import CountersignSeal
import Testing

@testable import CountersignOpaque

@Suite struct LoginTests {
    private let random = SystemRandom()

    @Test(arguments: [0, 1, 8, 63, 64, 65, 200, 65_535])
    func whoRegisteredLogsIn(passwordCount: Int) throws {
        var ceremony = try Ceremony(password: random.bytes(passwordCount))
        ceremony.stretching = try #require(
            .argon2id(memory: 64, passes: 1, lanes: 1, salt: [UInt8](repeating: 3, count: 16)))
        ceremony.credential = random.bytes(passwordCount % 50)
        for named in [true, false] {
            ceremony.parties.client = try named ? name(random.bytes(1 + passwordCount % 300)) : .publicKey
            ceremony.parties.server = try named ? name(random.bytes(32)) : .publicKey
            ceremony.context = try #require(LoginContext(random.bytes(passwordCount)))
            let registered = try ceremony.register()
            let record = try ceremony.stored(registered)
            let first = try ceremony.logIn(record)
            let second = try ceremony.logIn(record)
            #expect(registered.serverPublicKey == ceremony.keys.publicKey)
            #expect(first.client.sessionKey.exposed == first.server.exposed)
            #expect(second.client.sessionKey.exposed == second.server.exposed)
            #expect(first.server.exposed != second.server.exposed)
            #expect(first.client.exportKey.exposed == registered.exportKey.exposed)
            #expect(second.client.exportKey.exposed == registered.exportKey.exposed)
            #expect(first.client.serverPublicKey == ceremony.keys.publicKey)
        }
    }

    @Test func aPasswordThatIsTooLongIsNone() {
        #expect(Password(Secret(random: 65_536)) == nil)
        #expect(LoginContext([UInt8](repeating: 0, count: 65_536)) == nil)
        #expect(PartyIdentity.Name([UInt8](repeating: 0, count: 65_536)) == nil)
        #expect(PartyIdentity.Name([]) == nil)
    }

    @Test func aWrongPasswordDoesNotOpenTheEnvelope() throws {
        for count in [1, 12, 100] {
            let right = random.bytes(count)
            let ceremony = try Ceremony(password: right)
            let record = try ceremony.register().record
            var wrong: [[UInt8]] = [[], right + [0], Array(right.dropLast())]
            wrong += right.indices.map { index in right.enumerated().map { $0 == index ? $1 ^ 0x20 : $1 } }
            for password in wrong where password != right {
                var other = ceremony
                other.password = try #require(Password(Secret(copying: password.span)))
                #expect(try other.refusal(record) == .wrongPassword)
            }
        }
    }

    @Test func bothSidesMustNameTheSamePartiesAndContext() throws {
        var honest = try Ceremony(password: random.bytes(12))
        honest.parties = Parties(client: try name("alice"), server: try name("app"))
        honest.context = try #require(LoginContext(Array("countersign/1".utf8)))
        let record = try honest.register().record
        _ = try honest.logIn(record)

        var other = honest
        other.parties = Parties(client: honest.parties.server, server: honest.parties.client)
        #expect(try other.refusal(record) == .wrongPassword)
        #expect(try honest.refusal(record, server: other) == .serverNotAuthenticated)
        other.parties = Parties(client: try name("alicia"), server: honest.parties.server)
        #expect(try other.refusal(record) == .wrongPassword)
        #expect(try honest.refusal(record, server: other) == .serverNotAuthenticated)
        other.parties = Parties(client: honest.parties.client, server: .publicKey)
        #expect(try other.refusal(record) == .wrongPassword)
        #expect(try honest.refusal(record, server: other) == .serverNotAuthenticated)
        // What was the end of one name is the start of the next.
        other.parties = Parties(client: try name("alicea"), server: try name("pp"))
        #expect(try other.refusal(record) == .wrongPassword)

        other = honest
        other.context = try #require(LoginContext(Array("countersign/2".utf8)))
        #expect(try honest.refusal(record, server: other) == .serverNotAuthenticated)
        #expect(try other.refusal(record, server: honest) == .serverNotAuthenticated)
    }

    @Test func anotherServerOrAnotherAccountsRecordIsNotTaken() throws {
        let ceremony = try Ceremony(password: random.bytes(12))
        let record = try ceremony.register().record
        var other = ceremony
        other.keys = try ServerKeys.random()
        #expect(try ceremony.refusal(record, server: other) == .wrongPassword)
        // The same seed, so that the password's evaluation is right, and another key pair.
        let seed = ceremony.keys.bytes.part(0..<64)
        let bytes = Secret(joining: [seed, other.keys.keyPair.privateKey.bytes])
        let mixed = try ServerKeys(bytes)
        other.keys = try #require(mixed)
        #expect(try ceremony.refusal(record, server: other) == .wrongPassword)

        other = ceremony
        other.credential = Array("bob".utf8)
        #expect(try ceremony.refusal(record, server: other) == .wrongPassword)
        // Even with the same password.
        #expect(try ceremony.refusal(try other.register().record) == .wrongPassword)
    }

    @Test func theProofOfAnotherLoginIsNotTaken() throws {
        let ceremony = try Ceremony(password: random.bytes(12))
        let record = try ceremony.register().record
        let other = try ceremony.logIn(record).client.ke3.bytes
        #expect(try ceremony.refusal(record) { $0 == .ke3 ? other : $1 } == .clientNotAuthenticated)
        #expect(
            try ceremony.refusal(record) { $0 == .ke3 ? [UInt8](repeating: 0, count: 64) : $1 }
                == .clientNotAuthenticated)
    }

    private func name(_ text: String) throws -> PartyIdentity { try name(Array(text.utf8)) }

    private func name(_ bytes: [UInt8]) throws -> PartyIdentity {
        .name(try #require(PartyIdentity.Name(bytes)))
    }
}
