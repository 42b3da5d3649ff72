import ClientFakes
import CountersignMemory
import CountersignSchemes
import CountersignTrust
import Testing
import Waiting

@testable import Countersign

/// A client, an authority and clocks, for one test.
struct World: Sendable {
    let authority: FakeAuthority
    let backend: FakeBackend
    let clock = TestClock()
    let folder: TestFolder
    var options = CountersignOptions()
    /// A second one signs with the same release, as another start of the app does.
    let release: ReleaseKey

    init(_ change: (inout CountersignOptions) -> Void = { _ in }) async throws {
        let authority = try FakeAuthority()
        self.authority = authority
        backend = FakeBackend(authority)
        folder = try TestFolder()
        options.transport = .custom(FakeCarrier(backend: backend))
        options.clock = clock.device
        // Whatever the machine has that the tests run on.
        options.deviceKeyStorage = .softwareOnly
        change(&options)
        release = ReleaseKey(
            id: authority.releaseID?.description ?? "", app: nil,
            credentials: Credentials(keyID: try #require(authority.releaseID), key: authority.release),
            authorityKey: SigningKey(authority.answerKey), nextAuthorityKey: nil)
    }

    func client() throws -> CountersignClient {
        try CountersignClient(
            release: release, baseURL: "https://api.example.com", vault: .folder(folder.path), trust: .system,
            options: options)
    }

    /// A client with a signed-in account.
    func signedIn(_ name: String = "alice") async throws -> CountersignClient {
        let client = try client()
        try await client.signUp(name, "correct horse")
        try await client.logIn(name, "correct horse")
        return client
    }

    /// Time goes by, here and there.
    func pass(_ seconds: Int64) async {
        clock.pass(seconds)
        await authority.advance(by: seconds)
    }
}

/// Clocks that a test turns, both together.
final class TestClock: Sendable {
    private let now = Locked<Int64>(1_800_000_000)

    func pass(_ seconds: Int64) { now.with { $0 += seconds } }

    var device: DeviceClock {
        DeviceClock(
            wall: { self.now.with { $0 } }, monotonic: { UInt64(self.now.with { $0 }) * 1_000_000_000 })
    }
}

extension CountersignClient {
    /// Begins a request that is to wait for another state of the client, and returns when it waits.
    func waitingRequest(_ path: String) async -> Task<Int, any Error> {
        let before = core.context.report.listenerCount
        let isOver = Locked(false)
        let task = Task {
            defer { isOver.with { $0 = true } }
            return try await data(for: APIRequest(path)).1.status
        }
        await until("the request waits") { core.context.report.listenerCount > before || isOver.with { $0 } }
        return task
    }
}

/// Values as they come, for a test that waits for one.
func first<Value: Sendable>(
    of stream: AsyncStream<Value>, where condition: (Value) -> Bool
) async -> Value? {
    for await value in stream where condition(value) { return value }
    return nil
}
