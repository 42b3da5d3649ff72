import CountersignClient
import CountersignHandshake
import CountersignSeal
import CountersignVault
import CountersignWire
import Glibc

/// Memory is read sometimes: by a debugger, a crash dump, a flaw. What was read must not be good for ever.
struct OldRoot: Attack {
    let name: AttackName = "old-root"
    let column = Column.stolenToken
    let sentence =
        "Copies the session's root out of the app's memory, and uses it after the app has renewed the session twice."

    func exemption(of row: RowProfile) -> String? {
        row.isOurs ? nil : "requests are not signed with a key of the session's"
    }

    func run(on stage: Stage) async throws -> Outcome {
        try await stage.proveForgery()
        let victim = try await stage.signedInVictim()
        let copied = try await stage.session(of: victim)
        let order = stage.order(from: victim)
        let (token, key) = (copied.token.description, copied.latest.root.requestKey)
        // Else it would be no wonder that it is refused later.
        guard let now = stage.forgery.transfer(order, under: token, signedWith: key),
            try await stage.brings(now, noting: "copies the root out of the app's memory, and uses it at once")
        else { throw StageFault("\(stage.row.name): the root that was copied is not the session's") }

        // Requests of the epoch before are on their way when a session is renewed, and let in for half a minute; those of the one before that not.
        for _ in 0..<2 {
            try await victim.renew()
            _ = try await victim.balance()
        }
        let later = try await stage.session(of: victim)
        guard later.token.epoch == copied.token.epoch + 2 else {
            throw StageFault("\(stage.row.name): the session was renewed twice, and is in epoch \(later.token.epoch)")
        }
        stage.note(.victim, "renews the session twice, and goes on")
        for (token, with) in [(copied.token, "its own token"), (later.token, "the token of now")] {
            guard let request = stage.forgery.transfer(order, under: token.description, signedWith: key) else {
                continue
            }
            if try await stage.brings(request, noting: "uses the root again, under \(with)") {
                return .succeeded("the root that was copied still moves money, two renewals later")
            }
        }
        if let renewed = try await renew(copied, on: stage) {
            return .succeeded("the root that was copied renews the session: the server answers \(renewed.status)")
        }
        do {
            _ = try await victim.balance()
        } catch {
            return .succeeded("by using the root that was copied the victim was signed out: \(error)")
        }
        return .failed("two renewals later the root opens nothing, and without the device's key it cannot be followed")
    }

    /// Asks for the epoch that follows the one that was copied, with a device's key of the attacker's own. Nil where that is refused.
    private func renew(_ copied: DeviceSession, on stage: Stage) async throws -> RawResponse? {
        let software = SoftwareKeys()
        let own = DeviceSigningKey(try software.signingKey(software.makeKey(for: .signing).wrapped))
        let attempt = SystemRandom().bytes(RefreshTranscript.attemptCount)
        let now = Int64(time(nil))
        let transcript = RefreshTranscript(
            app: Setting.app, release: stage.appKey.id, token: copied.token, attempt: attempt, time: now
        ).bytes
        let mac = copied.latest.root.requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(transcript.span)
        let body: JSONValue = [
            "token": .string(copied.token.description), "attempt": .base64(attempt), "time": .integer(now),
            "mac": .base64(mac.indices.map { mac[$0] }), "signature": .base64(try own.sign(transcript)),
        ]
        guard
            let request = stage.forgery.post(
                "/countersign/v1/token", body, under: stage.appKey.id, signedWith: stage.appKey.secret)
        else { throw StageFault("\(stage.row.name): a refresh cannot be signed") }
        let response = try await stage.attack("asks for the next epoch, with a device's key of his own", request)
        return response.status == 200 ? response : nil
    }
}

extension Stage {
    /// What whoever reads the app's memory has.
    fileprivate func session(of victim: any Victim) async throws -> DeviceSession {
        guard case .device(let session)? = try await victim.memory()?.login?.session else {
            throw StageFault("\(row.name): \(victim.name) has no session in memory")
        }
        return session
    }
}
