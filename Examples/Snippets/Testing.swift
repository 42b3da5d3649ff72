// Tests of an app without a network and without waiting, and with injected faults.
import Countersign
import CountersignTestKit
import CountersignTransport
import CountersignTrust
import CountersignVault

/// A transport that returns the given responses.
func aMockTransport() async throws {
    let clock = ManualClock(wall: 1_767_225_600)
    let transport = MockTransport(
        [
            .answer(MockResponse(404, text: "nothing here")),
            .fail(TransportError(.timedOut(.idle), fate: .outcomeUnknown)),
            .perform { request in MockResponse(200, body: request.body) },
        ], clock: clock)
    transport.append(
        .answer(MockResponse(text: "late").after(.seconds(5))),
        .answer(MockResponse(text: "ha").breakingOff()))

    let request = OutgoingRequest(
        "GET", origin: Origin(.tls, host: try Trust.Host("api.example.com")), target: "/notes")
    let response = try await transport.send(request)
    assert(response.status == 404)
    for seen: RecordedRequest in transport.seen {
        print(
            seen.method, seen.url, seen.origin, seen.target, seen.fields.count, seen.body.count,
            seen.value(of: "accept") ?? "")
    }
    assert(transport.attempts == 1 && transport.stepsLeft == 4)
}

/// A transport that calls a closure, as a small server would.
func aMockServer() -> MockTransport {
    MockTransport { request in
        request.target == "/time"
            ? MockResponse(text: "12:00")
            : MockResponse(404, fields: [HeaderField("Retry-After", value: "1")])
    }
}

/// Sets each part of a response.
func anAnswerInParts() -> MockResponse {
    var answer = MockResponse()
    answer.status = 206
    answer.fields = [HeaderField("Content-Type", value: "text/plain")]
    answer.pieces = [Array("one".utf8), Array("two".utf8)]
    answer.delay = .milliseconds(200)
    answer.ending = MockResponse.Ending.brokenOff(.cancelled)
    answer.ending = .whole
    return answer
}

let step: MockStep = .answer(anAnswerInParts())

/// The time stands still until the test moves it.
func aManualClock() async throws {
    let clock = ManualClock()
    async let slept: Void = clock.sleep(for: .seconds(60))
    while clock.sleepers == 0 { await Task.yield() }
    clock.advance(by: .seconds(60))
    try await slept
    // The user sets the device's clock back by a day; no time passes.
    clock.setWall(clock.wall - 86_400)
    print(clock.monotonic, clock.deviceClock.wall())
}

/// A vault that fails at the second read, and one that another writer changes.
func aFaultyVault() async throws {
    let faulty = try FaultyVault()
    let name = try ItemName(service: "com.example.app", account: "theme")
    faulty.plan(.locked, at: .read, number: 2)
    faulty.plan(FaultyVault.Fault.writtenByAnother, at: FaultyVault.Call.write)
    faulty.plan(.removedByAnother, at: .remove)
    faulty.plan(.failedAfterwards, at: .list)
    try await faulty.vault.setText("dark", at: name)
    faulty.always(.slow(milliseconds: 50))
    faulty.always(.failed)
    faulty.always(nil)
    assert(faulty.calls == [.write] && faulty.pending == 3)
}

/// A person who refuses the first prompt and confirms presence at later ones.
func aPerson(_ vault: Vault) async throws {
    let person = ScriptedPerson()
    person.refuse(.retry)
    let name = try ItemName(service: "com.example.app", account: "code")
    _ = try await person.presence.setBytes([1, 2, 3], at: name, in: vault, reason: "Keep the code")
    assert(person.reasons == ["Keep the code"] && person.names.isEmpty)
}

/// The trust that was set last, for tests of changing pins.
func lastTrust(_ transport: MockTransport, _ trust: Trust) -> Trust? {
    transport.replaceTrust(by: trust)
    return transport.trusts.last
}

/// A signed-in client over the mock: tests everything of the app except the server.
func aSignedInClient(_ key: ReleaseKey) throws -> (CountersignClient, MockTransport) {
    let vault = try FaultyVault().vault
    try vault.pretend("anna", isSignedInTo: "api.example.com", app: key.app)
    let (clock, transport) = (ManualClock(), aMockServer())
    var options = CountersignOptions()
    options.transport = .custom(transport)
    options.clock = clock.deviceClock
    let client = try CountersignClient(
        release: key, baseURL: "https://api.example.com", vault: .using(vault), trust: .system,
        options: options)
    return (client, transport)
}

/// The error of a test double.
func failure(_ error: TestError) -> String { error.description }
