import CountersignClient
import CountersignSeal
import CountersignWire

extension Stage {
    /// What the victim's app holds as its token: out of its memory, or, of an app that keeps it open in its folder, out of that.
    func tokens(of victim: any Victim) async throws -> [CapturedToken] {
        if let login = try await victim.memory()?.login {
            switch login.session {
            case .device(let session): return [CapturedToken(token: session.token.description)]
            case .bearer(let session): return [CapturedToken(token: session.token.withExposedBytes { $0.text })]
            }
        }
        let loot = try Loot(backupOf: victim.folder, into: "\(folder)/memory-of-\(victim.name)")
        let tokens = loot.records.flatMap(\.tokens).filter { $0.token.utf8.count >= 16 }
        guard !tokens.isEmpty else { throw StageFault("\(row.name): \(victim.name) is signed in without a token") }
        return tokens
    }

    /// Every way to order a transfer with a token, and with what lies in the app's binary; without the keys of the victim's device.
    func withToken(_ captured: CapturedToken, of victim: any Victim) -> [RawRequest] {
        let (order, token) = (order(from: victim), captured.token)
        let plain = craft.transfer(order, token: captured, key: appKey)
        guard row.isOurs else { return [plain].compactMap(\.self) }
        let bearer = ("Authorization", "Bearer \(token)")
        var requests = [plain]
        // As if the release's key were the session's, as if none were needed, or as if the token were the key.
        for key in [appKey.secret, Stage.secret([UInt8](repeating: 0, count: 32)), Stage.secret(Array(token.utf8))] {
            requests.append(forgery.transfer(order, under: token, signedWith: key))
        }
        // As a bearer token, beside the release's own signature and without one.
        requests.append(forgery.transfer(order, under: appKey.id, signedWith: appKey.secret, adding: [bearer]))
        requests.append(unsigned(order, bearing: token))
        return requests.compactMap(\.self)
    }

    private func unsigned(_ order: Order, bearing token: String) -> RawRequest {
        let body: JSONValue = ["to": .string(order.payee), "amount": .integer(Int64(order.amount))]
        var request = RawRequest("POST", "/transfer", body: Array(body.text.utf8))
        request.fields["Authorization"] = "Bearer \(token)"
        request.fields["Content-Type"] = "application/json"
        return request
    }

    private static func secret(_ bytes: [UInt8]) -> Secret { Secret(copying: bytes.span) }
}

extension Loot.Record {
    /// All that may be a token, with each number beside it that may be its user's.
    var tokens: [CapturedToken] {
        let users = numbers.isEmpty ? [""] : numbers
        return texts.flatMap { text in users.map { CapturedToken(token: text, userID: $0) } }
    }
}
