import CountersignClient
import CountersignHandshake
import CountersignSeal
import CountersignVault
import CountersignWire
import Glibc

/// A token appears in logs, crash reports and support tickets.
struct StolenTokenAttack: Attack {
    let name: AttackName = "stolen-token"
    let column = Column.stolenToken
    let sentence =
        "Has the victim's token, as it stands in a log or in memory, and uses it from another device."

    func exemption(of row: RowProfile) -> String? {
        row.hasPasswords ? nil : "there are no tokens: each request is signed with the app's key"
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        try await stage.requireValidForgery()
        let victim = try await stage.signedInVictim()
        let tokens = try await stage.tokens(of: victim)
        stage.note(
            .attacker, action: "has what may be the victim's token",
            showing: tokens.map(\.token).joined(separator: "\n"))
        var tries = 0
        for token in tokens {
            for request in stage.transfers(bearing: token, of: victim) {
                tries += 1
                if try await stage.paysThief(request, noting: tries == 1 ? "orders a transfer with it" : nil)
                {
                    return .succeeded(
                        "the token suffices to act as the victim: money moved from another device")
                }
            }
        }
        guard tries > 0 else {
            throw LabError("\(stage.row.name): no request can be made with the victim's token")
        }
        return .failed(
            "the token names a session, and opens nothing: \(tries) ways to use it without the session's key "
                + "are refused"
        )
    }
}

/// Memory can be read by a debugger, in a crash dump or through a flaw. A copied root must not stay valid.
struct OldRootAttack: Attack {
    let name: AttackName = "old-root"
    let column = Column.stolenToken
    let sentence =
        "Copies the session's root out of the app's memory, and uses it after the app has renewed the "
        + "session twice."

    func exemption(of row: RowProfile) -> String? {
        row.isOurs ? nil : "requests are not signed with a key of the session's"
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        try await stage.requireValidForgery()
        let victim = try await stage.signedInVictim()
        let copied = try await stage.session(of: victim)
        let order = stage.theftOrder(from: victim)
        let (token, key) = (copied.token.description, copied.latest.root.requestKey)
        // Proves that the root is valid now; else a later refusal would mean nothing.
        guard let now = stage.forgery.transfer(order, under: token, signedWith: key),
            try await stage.paysThief(
                now, noting: "copies the root out of the app's memory, and uses it at once")
        else { throw LabError("\(stage.row.name): the root that was copied is not the session's") }

        // For half a minute after a renewal the gateway accepts requests of the epoch before, which may be on
        // their way; those of older epochs it refuses.
        for _ in 0..<2 {
            try await victim.renew()
            _ = try await victim.balance()
        }
        let later = try await stage.session(of: victim)
        guard later.token.epoch == copied.token.epoch + 2 else {
            throw LabError(
                "\(stage.row.name): the session was renewed twice, and is in epoch \(later.token.epoch)")
        }
        stage.note(.victim, action: "renews the session twice, and goes on")
        for (token, with) in [(copied.token, "its own token"), (later.token, "the token of now")] {
            guard let request = stage.forgery.transfer(order, under: token.description, signedWith: key)
            else {
                continue
            }
            if try await stage.paysThief(request, noting: "uses the root again, under \(with)") {
                return .succeeded("the root that was copied still moves money, two renewals later")
            }
        }
        if let renewed = try await renew(copied, on: stage) {
            return .succeeded(
                "the root that was copied renews the session: the server answers \(renewed.status)")
        }
        do {
            _ = try await victim.balance()
        } catch {
            return .succeeded("by using the root that was copied the victim was signed out: \(error)")
        }
        return .failed(
            "two renewals later the root opens nothing, and without the device's key it cannot be followed")
    }

    /// Requests the epoch after the copied one, with a device key of the attacker's own. Nil where the server
    /// refuses.
    private func renew(_ copied: DeviceSession, on stage: Stage) async throws -> RawResponse? {
        let software = SoftwareKeys()
        let own = DeviceSigningKey(try software.signingKey(software.makeKey(for: .signing).wrapped))
        let attempt = SystemRandom().bytes(RefreshTranscript.attemptCount)
        let now = Int64(time(nil))
        // Above every counter of the device: no copy of an older request.
        let counter: Int64 = 1 << 40
        let transcript = RefreshTranscript(
            app: BankApp.name, release: stage.appKey.id, token: copied.token, attempt: attempt, time: now,
            counter: counter, nonce: attempt
        ).bytes
        let mac = copied.latest.root.requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(
            transcript.span)
        let body: JSONValue = [
            "token": .string(copied.token.description), "attempt": .base64(attempt), "time": .integer(now),
            "counter": .integer(counter), "nonce": .base64(attempt),
            "mac": .base64(mac.indices.map { mac[$0] }), "signature": .base64(try own.sign(transcript)),
        ]
        guard
            let request = stage.forgery.post(
                "/countersign/v1/token", body: body, under: stage.appKey.id, signedWith: stage.appKey.secret)
        else { throw LabError("\(stage.row.name): a refresh cannot be signed") }
        let response = try await stage.attack(
            "asks for the next epoch, with a device's key of its own", request: request)
        return response.status == 200 ? response : nil
    }
}

extension Stage {
    /// The session that an attacker with access to the app's memory reads.
    fileprivate func session(of victim: any Victim) async throws -> DeviceSession {
        guard case .device(let session)? = try await victim.stateInMemory()?.login?.session else {
            throw LabError("\(row.name): \(victim.name) has no session in memory")
        }
        return session
    }
}
