import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import ScriptedClock
import Testing

/// The outbox of webhooks: an event waits for each endpoint that is told of it, from the transaction of the
/// change on, until it is finished; nothing waits without endpoints.
extension StoreContract {
    package func webhooks() throws {
        let account = try added(accountDraft("told"))
        #expect(try make().deliveryCounts() == WebhookCounts())
        let before = try Self.session(900, of: account)
        guard case .yes = try open(before, .unlimited) else {
            throw OperationalError(.failed, message: "not opened")
        }
        #expect(try make().deliveryCounts() == WebhookCounts(), "nobody is told")
        let document = """
            {"endpoints":[\
            {"id":"w_1","url":"https://a.example/","app":"\(Self.shop)","events":["session.started","device.added"],\
            "addresses":"public","created":1,"ca":null},\
            {"id":"w_2","url":"https://b.example/","app":null,"events":[],"addresses":"any","created":1,"ca":null},\
            {"id":"w_3","url":"https://c.example/","app":"other","events":[],"addresses":"any","created":1,\
            "ca":null},\
            {"id":"w_4","url":"https://d.example/","app":null,"events":["later.version"],"addresses":"any",\
            "created":1,"ca":null}]}
            """
        try make().set(.webhooks, to: Array(document.utf8))
        try eventsOfSessions(account)
        try attempts()
        try givenUp()
        try stages()
        try accountEvents(account)
        try guesses(at: account)
        try make().remove(.webhooks)
        for endpoint in ["w_1", "w_2"] { try make().dropDeliveries(of: endpoint) }
        #expect(try make().deliveryCounts() == WebhookCounts())
    }

    private func types(_ deliveries: [WebhookDelivery]) throws -> [String] {
        try deliveries.map { delivery in
            let document = try JSONReader.read(delivery.body)
            #expect(document.root["id"]?.string == delivery.event)
            return "\(delivery.endpoint) \(document.root["type"]?.string ?? "?")"
        }
    }

    /// Takes all that are due then, for so long that none is taken twice.
    private func take(at now: Int64, leaving busy: Set<String> = []) throws -> [WebhookDelivery] {
        var taken: [WebhookDelivery] = []
        while taken.count < 100, let next = try make().takeDelivery(dueAt: now, leaving: busy, for: 1_000) {
            taken.append(next)
        }
        return taken
    }

    private func eventsOfSessions(_ account: Account) throws {
        let session = try Self.session(901, of: account)
        guard case .yes = try open(session, .unlimited) else {
            throw OperationalError(.failed, message: "not opened")
        }
        let started = try take(at: 10_000_000)
        #expect(
            try types(started) == [
                "w_1 session.started", "w_2 session.started", "w_1 device.added", "w_2 device.added",
            ])
        #expect(started[0].event == started[1].event && started[0].event != started[2].event)
        let document = try JSONReader.read(started[0].body)
        #expect(document.root["account"]?.string == "name:\(account.name)")
        #expect(document.root["session"]?.string == session.id.description)
        for delivery in started { try make().finishDelivery(delivery.number) }
        // The device is known now.
        guard
            case .yes = try open(
                try Self.session(902, of: account, key: UInt8(truncatingIfNeeded: 901)), .unlimited)
        else {
            throw OperationalError(.failed, message: "not opened")
        }
        let again = try take(at: 10_000_000)
        #expect(try types(again) == ["w_1 session.started", "w_2 session.started"])
        for delivery in again { try make().finishDelivery(delivery.number) }
        _ = try make().end(.one(session.id), with: SessionTermination(.signedOut, at: 7), recording: nil)
        let ended = try take(at: 10_000_000)
        #expect(try types(ended) == ["w_2 session.ended"])
        #expect(try JSONReader.read(ended[0].body).root["reason"]?.string == "signed-out")
        // Ending a session that has ended changes nothing and adds no delivery.
        _ = try make().end(.one(session.id), with: SessionTermination(.signedOut, at: 7), recording: nil)
        #expect(try make().deliveryCounts().waiting == 1)
        try make().finishDelivery(ended[0].number)
    }

    private func attempts() throws {
        let delivery = WebhookDelivery(
            number: 0, endpoint: "w_1", event: "evt_1", created: 100, attempts: 0, body: [1, 0, 255])
        try make().add(delivery)
        try make().add(
            WebhookDelivery(
                number: 0, endpoint: "w_2", event: "evt_2", created: 101, attempts: 0, body: []))
        #expect(try make().takeDelivery(dueAt: 99, leaving: [], for: 60) == nil, "it is not due")
        #expect(try make().takeDelivery(dueAt: 200, leaving: ["w_1"], for: 60)?.event == "evt_2")
        let taken = try #require(try make().takeDelivery(dueAt: 200, leaving: [], for: 60))
        #expect(taken.event == "evt_1" && taken.body == [1, 0, 255] && taken.attempts == 0)
        #expect(try make().takeDelivery(dueAt: 259, leaving: [], for: 60) == nil, "another has it")
        // Who had it was killed.
        let second = try #require(try make().takeDelivery(dueAt: 260, leaving: ["w_2"], for: 60))
        #expect(second.number == taken.number)
        try make().postponeDelivery(taken.number, until: 1_000, because: "no answer é")
        #expect(try make().takeDelivery(dueAt: 999, leaving: ["w_2"], for: 60) == nil)
        let third = try #require(try make().takeDelivery(dueAt: 1_000, leaving: ["w_2"], for: 60))
        #expect(third.attempts == 1 && third.failure == "no answer é")
        #expect(try make().deliveryCounts() == WebhookCounts(waiting: 2, dead: 0, oldest: 100))
    }

    private func givenUp() throws {
        let delivery = try #require(try make().takeDelivery(dueAt: 5_000, leaving: ["w_2"], for: 60))
        try make().buryDelivery(delivery.number, at: 5_000, because: "gone")
        #expect(try make().takeDelivery(dueAt: .max / 2, leaving: ["w_2"], for: 60) == nil)
        #expect(try make().deadDeliveries(of: nil, limit: 9).map(\.event) == ["evt_1"])
        #expect(try make().deadDeliveries(of: "w_1", limit: 9).first?.givenUp == 5_000)
        #expect(try make().deadDeliveries(of: "w_2", limit: 9).isEmpty)
        #expect(try make().reviveDeliveries(of: "evt_9", at: 6_000) == 0)
        #expect(try make().reviveDeliveries(of: "evt_1", at: 6_000) == 1)
        let again = try #require(try make().takeDelivery(dueAt: 6_000, leaving: ["w_2"], for: 60))
        #expect(again.attempts == 0)
        try make().buryDelivery(again.number, at: 7_000, because: "gone")
        try make().forgetDeadDeliveries(before: 7_000)
        #expect(try make().deliveryCounts().dead == 1)
        try make().forgetDeadDeliveries(before: 7_001)
        #expect(try make().deliveryCounts().dead == 0)
        try make().dropDeliveries(of: "w_2")
        #expect(try make().deliveryCounts() == WebhookCounts())
    }

    /// Beyond a number an account's events are withheld, and one event carries their count. What an
    /// administrator does is never withheld, and is delivered first.
    private func accountEvents(_ account: Account) throws {
        let began: Int64 = 200_000
        try make().announceWithheld(at: .at(began))
        for number in 1...Int(WebhookShares.accountEvents) + 5 {
            let session = try Self.session(
                2_000 + number, of: account, at: began, key: UInt8(truncatingIfNeeded: 901))
            guard case .yes = try open(session, .unlimited, at: began) else {
                throw OperationalError(.failed, message: "not opened")
            }
        }
        #expect(try make().deliveryCounts().waiting == 2 * WebhookShares.accountEvents)
        // Sign-ins use up no event about the account's security.
        let revoked = try Self.session(2_001, of: account, at: began, key: UInt8(truncatingIfNeeded: 901))
        _ = try make().end(
            .one(revoked.id), with: SessionTermination(.revoked, at: began + 1), recording: nil)
        #expect(try make().deliveryCounts().waiting == 2 * WebhookShares.accountEvents + 1)
        let ended = try make().end(
            .account(account.number, except: nil), with: SessionTermination(.disabled, at: began + 1),
            recording: nil)
        #expect(ended.count > Int(WebhookShares.accountEvents))
        let first = try #require(try make().takeDelivery(dueAt: began + 1, leaving: [], for: 1_000))
        #expect(try types([first]) == ["w_2 session.ended"], "it came last")
        #expect(
            try make().deliveryCounts().waiting
                == 2 * WebhookShares.accountEvents + 1 + Int64(ended.count))
        try make().announceWithheld(at: .at(began + WebhookShares.window - 1))
        for endpoint in ["w_1", "w_2"] { try make().dropDeliveries(of: endpoint) }
        try make().announceWithheld(at: .at(began + WebhookShares.window))
        try make().announceWithheld(at: .at(began + WebhookShares.window))
        let told = try take(at: 10_000_000)
        #expect(try types(told) == ["w_1 account.events-withheld", "w_2 account.events-withheld"])
        let document = try JSONReader.read(told[0].body)
        #expect(document.root["account"]?.string == "name:\(account.name)")
        #expect(document.root["count"].flatMap { document.integer($0, in: 0...1_000) } == 5)
        #expect(document.root["since"].flatMap { document.integer($0, in: 0...1_000_000) } == Int(began))
        for delivery in told { try make().finishDelivery(delivery.number) }
        #expect(try make().droppedDeliveries().isEmpty)
    }

    /// An account has one event about failed logins an hour, whichever process asks, also if its other events
    /// were counted meanwhile.
    private func guesses(at account: Account) throws {
        let began: Int64 = 300_000
        func isSettled(_ failed: Int64, at now: Int64) throws -> Bool {
            try make().announceGuesses(failed, ofAccount: account.number, at: .at(now))
        }
        #expect(try isSettled(12, at: began))
        #expect(try !isSettled(15, at: began + 1), "another process asks")
        let told = try take(at: 10_000_000)
        #expect(try types(told) == ["w_2 account.guessed"])
        let document = try JSONReader.read(told[0].body)
        #expect(document.root["account"]?.string == "name:\(account.name)")
        #expect(document.root["count"].flatMap { document.integer($0, in: 0...1_000) } == 12)
        let session = try Self.session(3_000, of: account, at: began + 1, key: UInt8(truncatingIfNeeded: 901))
        guard case .yes = try open(session, .unlimited, at: began + 1) else {
            throw OperationalError(.failed, message: "not opened")
        }
        try make().announceWithheld(at: .at(began + 1 + WebhookShares.window))
        #expect(try !isSettled(15, at: began + AccountGuesses.reportSeconds - 1))
        try make().announceWithheld(at: .at(began + AccountGuesses.reportSeconds))
        #expect(try isSettled(15, at: began + AccountGuesses.reportSeconds))
        // A clock that was far ahead holds nothing back.
        #expect(try isSettled(11, at: began + 40 * AccountGuesses.reportSeconds))
        #expect(try isSettled(13, at: began + 3 * AccountGuesses.reportSeconds))
        #expect(try make().announceGuesses(12, ofAccount: 999_999, at: .at(began)), "no such account")
        for endpoint in ["w_1", "w_2"] { try make().dropDeliveries(of: endpoint) }
    }

    /// Each stage is told once, by whichever process comes first.
    private func stages() throws {
        let id = try #require(KeyID("1001"))
        var retirement = AppRelease.Retirement(at: 3_000, updateURL: "https://x.example/")
        retirement.warnAt = 1_000
        retirement.readOnlyAt = 2_000
        #expect(try make().retire(id, with: retirement, recording: .counting) == .yes)
        try make().announceStages(at: 500)
        #expect(try make().deliveryCounts().waiting == 0, "what was before the first look is not told")
        try make().announceStages(at: 1_000)
        try make().announceStages(at: 1_000)
        try make().announceStages(at: 2_999)
        let told = try take(at: 10_000_000)
        #expect(try types(told) == ["w_2 release.stage-reached", "w_2 release.stage-reached"])
        #expect(try told.map { try JSONReader.read($0.body).root["stage"]?.string } == ["warn", "read-only"])
        for delivery in told { try make().finishDelivery(delivery.number) }
        #expect(try make().undoRetirement(of: id, recording: .counting) == .yes)
        try make().announceStages(at: 4_000)
        #expect(try make().deliveryCounts().waiting == 0)
        try make().remove(.webhookStages)
    }
}
