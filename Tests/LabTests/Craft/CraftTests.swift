import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignLab

/// The values that attacks read from requests, and the requests that they write.
@Suite struct CraftTests {
    private let destination = SigningContext(
        authority: "bank.test:80", transport: .plain, platform: "ios", version: "2.0")
    private let key = AppKey(
        id: "app", secret: Secret(copying: Array("a2V5IG9mIHRoZSBhcHAsIDMyIGJ5dGVzIGxvbmcgLi4".utf8).span),
        ladder: "pepper")

    private func craft(_ name: String) throws -> any SchemeAttackKit {
        let row = try #require(RowCatalogue.all.first { $0.name.description == name })
        return AttackKitCatalogue.attackKit(for: row, in: destination)
    }

    @Test(arguments: [
        "plain-get", "plain-post", "base64", "md5", "md5-salt", "hmac-md5", "hmac-md5-time", "tokens-tls",
    ])
    func aLoginThatWasWrittenIsRead(row: String) throws {
        let craft = try craft(row)
        let request = try #require(craft.login(name: "anna", password: "a b&c", key: key))
        let login = try #require(craft.login(in: RawExchange(request: request, response: nil)))
        #expect(login.name == "anna")
        // The captured values suffice to repeat the request.
        #expect(craft.login(login, key: nil) == request)
    }

    @Test(arguments: ["md5", "form-md5", "tokens-pinned", "md5+gateway", "message-signatures-password"])
    func aTokenThatWasWrittenIsRead(row: String) throws {
        let craft = try craft(row)
        let order = TransferOrder(payer: "anna", payee: "thief", amount: 7)
        let token = CapturedToken(token: "b_token", userID: "7")
        let request = try #require(craft.transfer(order, token: token, key: key))
        #expect(request.isTransfer)
        #expect(craft.token(in: RawExchange(request: request, response: nil))?.token == "b_token")
    }

    @Test(arguments: ["md5", "form-md5"])
    func aRefusedLoginGivesNoToken(row: String) throws {
        let craft = try craft(row)
        func answer(_ text: String) -> RawResponse { RawResponse(200, body: Array(text.utf8)) }
        #expect(craft.token(from: answer(#"{"userId":0}"#)) == nil)
        #expect(craft.token(from: answer(#"{"userId":0,"token":"t"}"#)) == nil)
        #expect(craft.token(from: answer(#"{"err":{"code":-100}}"#)) == nil)
        #expect(craft.token(from: answer(#"{"userId":7,"token":"t"}"#))?.userID == "7")
    }

    @Test(arguments: RowCatalogue.all.map(\.name.description))
    func nobodySignsWithoutTheKey(row: String) throws {
        let order = TransferOrder(payer: "anna", payee: "thief", amount: 7)
        let token = CapturedToken(token: "t", userID: "7")
        let request = try craft(row).transfer(order, token: token, key: nil)
        let profile = try #require(RowCatalogue.all.first { $0.name.description == row })
        let isUnsigned =
            [.token, .openRoute].contains(profile.scheme)
            || profile.server == .reference && row != "form-md5" && profile.hasPasswords
        #expect((request != nil) == isUnsigned)
    }

    @Test(arguments: [
        "form-md5", "auth-v1", "auth-v2", "auth-v4", "sigv4", "countersign", "message-signatures-password",
    ])
    func anotherTimeChangesNothingElse(row: String) throws {
        let craft = try craft(row)
        let order = TransferOrder(payer: "anna", payee: "thief", amount: 7)
        let token = row == "countersign" ? nil : CapturedToken(token: "t", userID: "7")
        let request = try #require(craft.transfer(order, token: token, key: key))
        let later = try #require(craft.restamped(request, at: 2_000_000_000))
        #expect(later != request)
        #expect(craft.restamped(later, at: 2_000_000_000) == later)
        #expect(later.method == request.method && later.path == request.path)
    }

    @Test(arguments: [
        "form-md5", "auth-v1", "auth-v2", "auth-v4", "sigv4", "countersign", "message-signatures-password",
    ])
    func eachAmbiguityHasSomethingToTry(row: String) throws {
        let craft = try craft(row)
        let theft = TransferOrder(payer: "anna", payee: "thief", amount: 500)
        let token = CapturedToken(token: "t", userID: "7")
        for ambiguity in craft.ambiguities {
            var order = TransferOrder(payer: "me", payee: "shop", amount: 5)
            if case .ownTransfer(let payee) = ambiguity.source {
                order.payee = try #require(payee(theft, token))
            }
            let request = try #require(
                craft.transfer(order, token: row == "countersign" ? nil : token, key: key))
            let changed = ambiguity.apply(request, theft)
            #expect(!changed.isEmpty, "\(ambiguity.name)")
            for one in changed { #expect(one != request, "\(ambiguity.name)") }
        }
    }
}
