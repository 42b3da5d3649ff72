import CountersignOpaque
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignLab

/// Password guessing without requests to the server.
@Suite struct GuessingTests {
    private let words = (0..<1_000).map { "word\($0)" }

    @Test func theWordThatFitsIsFound() {
        let found = WordListSearch.run(over: words) { $0 == "word777" }
        #expect(found.word == "word777")
        #expect(found.tried <= 1_000 && found.rate > 0)
        let none = WordListSearch.run(over: words) { _ in false }
        #expect(none.word == nil && none.tried == 1_000)
    }

    @Test func oneOfManyMachinesHasTheWord() {
        let share = words.share(containing: "word777", of: 20)
        #expect(share.count == 20 && share.contains("word777") && share.first == "word760")
        #expect(words.share(containing: "none of them", of: 20).count == 1_000)
    }

    @Test(arguments: RowProfile.LadderRung.allCases)
    func eachRungsLoginCanBeTested(rung: RowProfile.LadderRung) throws {
        let craft = LadderAttackKit(rung)
        let key = AppKey(id: "app", secret: Secret(copying: Array("key".utf8).span), ladder: "pepper")
        let request = try #require(craft.login(name: "anna", password: "word777", key: key))
        let login = try #require(craft.login(in: RawExchange(request: request, response: nil)))
        #expect(craft.value(of: "word777", name: "anna", key: key) == login.value)
        #expect(craft.value(of: "word778", name: "anna", key: key) != login.value)
    }

    /// On the last rung the stored value, with the app's key, yields the sent value and so signs in.
    @Test func whatIsKeptOfTheLastRungSignsIn() throws {
        let craft = LadderAttackKit(.hmacMD5Time)
        let key = AppKey(id: "app", secret: Secret(copying: Array("key".utf8).span), ladder: "pepper")
        let kept = "0123456789abcdef0123456789abcdef"
        let request = try #require(craft.login(stored: CapturedLogin(name: "anna", value: kept), key: key))
        let sent = try #require(craft.login(in: RawExchange(request: request, response: nil)))
        #expect(sent.value != kept && sent.value.utf8.count == 32)
    }

    @Test func aSlowHashIsTested() throws {
        let password = Secret(copying: Array("word777".utf8).span)
        let kept = try PasswordHash(of: password, cost: #require(HashCost(memory: 64, passes: 1)))
        let text = kept.encoded.withExposedBytes { Hex.encode($0) }
        let slow = try #require(StolenPasswordHash(text))
        #expect(slow.matches("word777"))
        #expect(!slow.matches("word778"))
        for bad in ["", "active", String(text.dropFirst(2))] { #expect(StolenPasswordHash(bad) == nil) }
    }

    /// The test that the attack applies to OPAQUE finds a password in an unblinded transcript.
    @Test func anUnblindedTranscriptTells() throws {
        let password = try #require(Password(Secret(copying: Array("word777".utf8).span)))
        let bare = try #require(password.element).bytes
        let blinded = try #require(password.element).times(.random(SystemRandom())).bytes
        #expect(try transcript(beginning: bare).confirms("word777"))
        #expect(try !transcript(beginning: bare).confirms("word778"))
        #expect(try !transcript(beginning: blinded).confirms("word777"))
    }

    private func transcript(beginning element: [UInt8]) throws -> OpaqueTranscript {
        let body: JSONValue = ["account": "anna", "ke1": .base64(element + [UInt8](repeating: 7, count: 64))]
        let request = RawRequest(
            method: "POST", target: "/countersign/v1/login/start", body: Array(body.text.utf8))
        return try #require(OpaqueTranscript([RawExchange(request: request, response: nil)]))
    }
}
