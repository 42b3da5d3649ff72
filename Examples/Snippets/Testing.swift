// An app's own tests: without a network, without waiting, and with faults when they are wanted.
import Countersign
import CountersignTestKit
import CountersignTransport
import CountersignTrust
import CountersignVault

/// A transport that answers as it was told.
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

/// One that asks a closure, as a small server would.
func aMockServer() -> MockTransport {
    MockTransport { request in
        request.target == "/time"
            ? MockResponse(text: "12:00")
            : MockResponse(404, fields: [HeaderField("Retry-After", value: "1")])
    }
}

/// An answer in parts, as it is.
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

/// Time stands still until it is moved.
func aManualClock() async throws {
    let clock = ManualClock()
    async let slept: Void = clock.sleep(for: .seconds(60))
    while clock.sleepers == 0 { await Task.yield() }
    clock.advance(by: .seconds(60))
    try await slept
    // The user sets his clock back by a day; no time goes by.
    clock.setWall(clock.wall - 86_400)
    print(clock.monotonic, clock.deviceClock.wall())
}

/// A vault that goes wrong at the second reading, and one that somebody else writes to.
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

/// A person who shows that he is there, but for the first time that he is asked.
func aPerson(_ vault: Vault) async throws {
    let person = ScriptedPerson()
    person.refuse(.retry)
    let name = try ItemName(service: "com.example.app", account: "code")
    _ = try await person.presence.setBytes([1, 2, 3], at: name, in: vault, reason: "Keep the code")
    assert(person.reasons == ["Keep the code"] && person.names.isEmpty)
}

/// What replaced the trust, for tests of pins that change.
func lastTrust(_ transport: MockTransport, _ trust: Trust) -> Trust? {
    transport.replaceTrust(by: trust)
    return transport.trusts.last
}

/// For an implementation of one's own, in whatever language: what is signed, and what comes out.
func check(_ sign: (_ stringToSign: String, _ secret: [UInt8]) -> String) {
    for vector: SignatureVector in SignatureVector.all {
        let expected = vector.fields.first { $0.name == "Signature" }.map {
            String(decoding: $0.value, as: UTF8.self)
        }
        let request =
            "\(vector.method) \(vector.scheme)://\(vector.authority)\(vector.target), \(vector.body.count) bytes"
        assert(
            expected == "app=:\(sign(vector.stringToSign, vector.secret)):",
            "\(vector.name): \(request), key \(vector.keyID), at \(vector.created)")
    }
}

/// A client that is signed in, over the mock: everything of the app's own but the server.
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
