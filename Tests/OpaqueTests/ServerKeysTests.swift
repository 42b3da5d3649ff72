import CountersignSeal
import Testing

@testable import CountersignOpaque

@Suite struct ServerKeysTests {
    @Test func accountsOutliveARestart() throws {
        var ceremony = try Ceremony(password: Array("correct horse".utf8))
        let record = try ceremony.register().record
        let bytes = ceremony.keys.bytes
        #expect(bytes.count == ServerKeys.count)
        let again = try ServerKeys(bytes)
        ceremony.keys = try #require(again)
        let login = try ceremony.logIn(record)
        #expect(login.client.sessionKey.exposed == login.server.exposed)
    }

    @Test func whatIsNoKeyIsNotTaken() throws {
        let bytes = try ServerKeys.random().bytes
        let zero = Secret(joining: [
            bytes.part(0..<64), Secret(copying: [UInt8](repeating: 0, count: 32).span),
        ])
        for wrong in [bytes.part(0..<95), Secret(joining: [bytes, bytes]), zero] {
            let keys = try ServerKeys(wrong)
            #expect(keys == nil)
        }
    }

    @Test func noSecretIsPrinted() throws {
        var text = ""
        let keys = try ServerKeys.random()
        dump(keys, to: &text)
        print(keys, keys.fakeRecord, to: &text)
        let seed = keys.bytes.exposed.prefix(8).map { String($0) }
        #expect(text.contains("<secret>"))
        #expect(!text.contains(seed.joined(separator: ", ")))
    }
}
