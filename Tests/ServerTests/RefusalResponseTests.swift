// Proves that the response to a refusal, which is written as bytes, is the JSON text that docs/protocol.md
// describes, for every code and every part of a refusal.

import CountersignHTTP
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignServer

@Suite struct RefusalResponseTests {
    private var event: EventID {
        var generator = SplitMix64(seed: 7)
        return EventID(&generator)
    }

    private func members(of code: Refusal.Code) -> [(name: String, value: JSONValue)] {
        [
            ("type", "about:blank"), ("title", .string(code.title)), ("status", .integer(Int64(code.status))),
            ("code", .string(code.name)), ("instance", .string(event.text)),
        ]
    }

    @Test("the problem of each code", arguments: Refusal.Code.allCases)
    func problem(_ code: Refusal.Code) {
        let detail = "needs \"escapes\" \\ and is longer than eight bytes é"
        let response = RefusalResponse.make(
            Refusal(code, detail: detail), dialect: .problem, disclosure: .reason, event: event, now: 1_000)
        var members = members(of: code)
        members.append(("detail", .string(detail)))
        if code == .stale { members.append(("time", 1000)) }
        #expect(String(decoding: response.body, as: UTF8.self) == JSONValue.object(members).text)
        #expect(response.status == code.status)
        #expect(
            response.fields.map { "\($0.name): \($0.value)" }
                == ["Content-Type: application/problem+json", "Cache-Control: no-store"])
    }

    @Test("the position of each code is that among all codes")
    func ordinals() {
        #expect(Refusal.Code.allCases.map(\.ordinal) == Array(Refusal.Code.allCases.indices))
    }

    @Test("the members that few refusals have")
    func rareMembers() {
        var refusal = Refusal(
            .unavailable, detail: "not for callers", link: "https://a.example/\"", retryAfter: 5,
            previousStatus: 409)
        refusal.endedSession = .init(reason: "revoked", at: 5, by: "phone")
        refusal.work = WorkOffer(challenge: [1, 2, 3], puzzles: 4, hashes: 5, expires: 6)
        refusal.refreshProgress = .init(counter: 1, epoch: 2, transcript: [9])
        #expect(!refusal.isPlain)
        let response = RefusalResponse.make(
            refusal, dialect: .problem, disclosure: .code, event: event, now: 1_000)
        let rest: [(name: String, value: JSONValue)] = [
            ("done_status", 409), ("update_url", "https://a.example/\""), ("reason", "revoked"), ("at", 5),
            ("by", "phone"), ("work", ["challenge": "AQID", "puzzles": 4, "hashes": 5, "expires": 6]),
            ("counter", 1), ("epoch", 2), ("transcript", "CQ"),
        ]
        #expect(
            String(decoding: response.body, as: UTF8.self)
                == JSONValue.object(members(of: .unavailable) + rest).text)
        #expect(response.fields.last?.name == "Retry-After")
        #expect(response.fields.last?.value == "5")
        refusal.endedSession = nil
        refusal.work = nil
        refusal.refreshProgress = nil
        refusal.link = nil
        #expect(refusal != Refusal(.unavailable, detail: "not for callers", retryAfter: 5))
        refusal.previousStatus = nil
        #expect(refusal == Refusal(.unavailable, detail: "not for callers", retryAfter: 5))
    }
}
