import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignWire
import Testing

@Suite struct SlotRuleTests {
    /// Four live sessions: phone and tablet on ios, phone and desktop elsewhere; numbered in order of
    /// opening; the clock was set back once in between.
    private let live: [StoredSession]

    init() throws {
        live = [
            try SlotRuleTests.session(1, "ios", .phone, created: 100),
            try SlotRuleTests.session(2, "ios", .tablet, created: 90),
            try SlotRuleTests.session(3, "android", .phone, created: 100),
            try SlotRuleTests.session(4, "linux", .desktop, created: 120),
        ]
    }

    private static func session(
        _ number: UInt8, _ platform: String, _ kind: Device.Class, created: Int64
    ) throws -> StoredSession {
        let bytes = [UInt8](repeating: number, count: SessionID.count)
        guard let id = SessionID(bytes.span) else {
            throw OperationalError(.failed, message: "sixteen bytes are no id")
        }
        var session = StoredSession(
            id: id, account: 1, app: try #require(AppName("demo")),
            platform: try #require(Platform(platform)), deviceClass: kind, deviceName: "d", created: created,
            credentials: .bearer(
                BearerCredentials(tokenHash: [], tokenExpires: 0, issued: 0, loginTokenHash: [])))
        session.change = Int64(number)
        return session
    }

    @Test(
        "which sessions go for a phone on ios",
        arguments: [
            (SlotRule.single, [1, 2, 3, 4]),
            (.perPlatform, [1, 2]),
            (.perDeviceClass, [1, 3]),
            // The oldest by creation; of two in the same second, the one written first.
            (.limit(4), [2]),
            (.limit(3), [2, 1]),
            (.limit(1), [2, 1, 3, 4]),
            (.limit(5), []),
            (.limit(.max), []),
            // With values that no policy has, only the new session remains.
            (.limit(0), [2, 1, 3, 4]),
            (.limit(.min), [2, 1, 3, 4]),
            (.unlimited, []),
        ] as [(SlotRule, [Int64])])
    func displaced(_ row: (rule: SlotRule, expected: [Int64])) throws {
        let new = try SlotRuleTests.session(9, "ios", .phone, created: 95)
        #expect(row.rule.displaced(by: new, among: live).map(\.change) == row.expected)
        #expect(row.rule.displaced(by: new, among: []).isEmpty)
    }

    @Test("no rule leaves an account more sessions than can be looked at")
    func most() throws {
        let many = try (0..<SlotRule.mostLive).map { number in
            var session = try SlotRuleTests.session(1, "ios", .phone, created: Int64(number))
            session.change = Int64(number)
            return session
        }
        let new = try SlotRuleTests.session(9, "ios", .phone, created: 5_000)
        for rule in [SlotRule.unlimited, .limit(SlotRule.mostLive), .limit(.max)] {
            #expect(rule.displaced(by: new, among: many).map(\.change) == [0])
            #expect(rule.displaced(by: new, among: Array(many.dropLast())).isEmpty)
        }
    }

    @Test("whether there is room can be told from a number, and then none is displaced")
    func room() throws {
        let rules: [SlotRule] = [
            .single, .perPlatform, .perDeviceClass, .limit(1), .limit(4), .limit(5), .unlimited,
        ]
        for rule in rules {
            for count in 0...live.count where rule.hasRoom(beside: count) {
                let new = try SlotRuleTests.session(9, "ios", .phone, created: 200)
                #expect(rule.displaced(by: new, among: Array(live.prefix(count))).isEmpty)
            }
            #expect(rule.hasRoom(beside: 0))
        }
        #expect(!SlotRule.single.hasRoom(beside: 1) && !SlotRule.limit(4).hasRoom(beside: 4))
        #expect(
            SlotRule.limit(5).hasRoom(beside: 4) && !SlotRule.unlimited.hasRoom(beside: SlotRule.mostLive))
    }
}
