import Countersign
import CountersignLab
import CountersignTestServer
import Foundation
import Testing

/// Proves that legacy clients work with the lab's reference servers.
@Suite struct ReferenceServerTests {
    private struct Said: Decodable {
        var moved: Int?
        var balance: Int?
        var card: String?
    }

    private static let plain = [
        "plain-get", "plain-post", "base64", "md5", "md5-salt", "hmac-md5", "hmac-md5-time", "form-md5",
        "auth-v1", "auth-v2", "auth-v4", "sigv4",
    ]

    @Test(arguments: plain) func aClientOfTheSchemeIsServed(_ row: String) async throws {
        let scene = try Scene(row)
        let client = try scene.client()
        if scene.row.hasPasswords {
            // This rung's value is good for a minute or two, which a busy machine may take to send it.
            if row == "hmac-md5-time" { try? await client.logIn("anna", Scene.password) }
            try await client.logIn("anna", Scene.password)
        }
        #expect(try await client.value(for: scene.order, as: Said.self).moved == 10)
        let said = try await client.value(for: scene.question, as: Said.self)
        #expect(said.balance == Bank.openingBalance - 10)
        #expect(said.card == (try scene.bank.cardNumber(of: "anna")))
        #expect(try scene.balance("bob") == Bank.openingBalance + 10)
        await scene.stop()
    }

    @Test(arguments: plain.prefix(8)) func aWrongPasswordOpensNothing(_ row: String) async throws {
        let scene = try Scene(row)
        let client = try scene.client()
        for (name, password) in [("anna", "another"), ("nobody", Scene.password)] {
            await #expect(throws: CountersignError.self) { try await client.logIn(name, password) }
            guard case .signedOut = client.state else {
                Issue.record("\(name) is in")
                continue
            }
        }
        await scene.stop()
    }

    @Test(arguments: ["form-md5", "auth-v1", "auth-v2", "auth-v4", "sigv4"])
    func aChangedAmountIsNoticed(_ row: String) async throws {
        let scene = try Scene(row)
        let client = try scene.client()
        if scene.row.hasPasswords { try await client.logIn("anna", Scene.password) }
        var request = try await scene.captured(by: client)
        let body = request.body
        request.body = Array(String(decoding: body, as: UTF8.self).replacing("10", with: "90").utf8)
        #expect(request.body != body)
        #expect(try scene.send(request).text.contains("err"))
        #expect(try scene.moved == 0)
        await scene.stop()
    }

    @Test func withoutATokenNothingMoves() async throws {
        let scene = try Scene("md5")
        let answer = try scene.send(.form("/transfer", "user=anna&to=bob&amount=10"))
        #expect(answer.text.contains("-100"))
        #expect(try scene.moved == 0)
        await scene.stop()
    }

    @Test func aTokenThatRanOutIsRenewedUnseen() async throws {
        let scene = try Scene("md5")
        let client = try scene.client()
        try await client.logIn("anna", Scene.password)
        let before = try await scene.captured(by: client)
        try scene.server.expireTokens()
        #expect(try scene.send(before).text.contains("-101"))
        #expect(try await client.value(for: scene.order, as: Said.self).moved == 10)
        await scene.stop()
    }

    @Test func theSecondLoginEndsTheFirst() async throws {
        let scene = try Scene("form-md5")
        let (first, second) = (try scene.client(), try scene.client())
        try await first.logIn("anna", Scene.password)
        try await second.logIn("anna", Scene.password)
        await #expect(throws: CountersignError.self) {
            _ = try await first.value(for: scene.order, as: Said.self)
        }
        #expect(first.state != second.state)
        #expect(try await second.value(for: scene.order, as: Said.self).moved == 10)
        await scene.stop()
    }

    @Test func overTLSTheKeyIsExchangedAsOldServersHaveIt() async throws {
        let authorities = try StageCertificates(serverKey: .rsa(2048))
        let scene = try Scene("tokens-tls", tls: authorities)
        let client = try scene.client(trusting: authorities)
        try await client.logIn("anna", Scene.password)
        #expect(try await client.value(for: scene.order, as: Said.self).moved == 10)
        #expect(scene.server.tlsKey?.contains("PRIVATE KEY") == true)
        await scene.stop()
    }

    @Test func aRestartKeepsTheDatabaseAndThePort() async throws {
        let scene = try Scene("md5")
        let client = try scene.client()
        try await client.logIn("anna", Scene.password)
        let (request, port) = (try await scene.captured(by: client), scene.server.port)
        try await scene.server.restart()
        #expect(scene.server.port == port)
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        guard case .listens(let other) = try await scene.server.startSecondNode() else {
            Issue.record("no second node")
            return
        }
        #expect(other != port)
        #expect(try exchange(other, request).text == #"{"moved":10}"#)
        await scene.stop()
        #expect(throws: LabError.self) { try scene.send(request) }
    }

    @Test func onlyFormMD5KnowsRetiredVersions() async throws {
        let scene = try Scene("form-md5")
        let client = try scene.client()
        guard case .done = try await scene.server.retire(scene.app) else {
            Issue.record("not retired")
            return
        }
        await #expect(throws: CountersignError.self) { try await client.logIn("anna", Scene.password) }
        try await scene.server.reinstate(scene.app)
        await client.resume()
        try await client.logIn("anna", Scene.password)
        await scene.stop()
        let other = try Scene("md5")
        guard case .unsupported = try await other.server.retire(other.app) else {
            Issue.record("a ladder server that knows versions")
            return
        }
        await other.stop()
    }
}
