// Proves that an event that serves another request has nothing of the one before.
import CountersignGate
import CountersignHTTP
import CountersignWire
import Testing

@testable import CountersignServer

@Suite("Request events")
struct RequestEventTests {
    /// Each stored property with its value as text, of the class that is renewed.
    private func values(of event: RequestEvent) -> [String: String] {
        var values: [String: String] = [:]
        for child in Mirror(reflecting: event).children { values[child.label ?? "?"] = "\(child.value)" }
        return values
    }

    @Test func aRenewedOneIsLikeANewOne() {
        var generator = SplitMix64(seed: 1)
        let (first, second) = (EventID(&generator), EventID(&generator))
        let event = RequestEvent(id: first, began: 1)
        let fresh = values(of: event)
        event.trafficFields = [ServerResponse.Field("RateLimit", value: "x")]
        event.operation = .login
        event.refusal = Refusal(.stale, detail: "of the request before")
        event.failure = .clientAborted
        event.isSignedIn = true
        event.isRepeated = true
        event.unsignedParty = .app("demo")
        event.original = DecideSubject(Request())
        event.end()
        let used = values(of: event)
        for name in [
            "nanoseconds", "trafficFields", "operation", "refusal", "failure", "isSignedIn", "isRepeated",
            "unsignedParty", "original",
        ] {
            #expect(used[name] != fresh[name], "\(name) was not set")
        }
        event.renew(id: second, began: 2)
        #expect(values(of: event) == values(of: RequestEvent(id: second, began: 2)))
    }
}
