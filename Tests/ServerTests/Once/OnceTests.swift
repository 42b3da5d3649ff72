import CountersignAuthority
import CountersignHTTP
import CountersignSQLite
import CountersignWire
import Foundation
import Synchronization
import Testing

@testable import CountersignServer

/// Requests with idempotency keys, over a real store.
@Suite struct OnceTests {
    private let request = IdempotentRequest(scope: .account(1), key: [1], digest: [2], begun: 1_800_000_000)
    private let answer = IdempotentAnswer.whole(
        status: 201, fields: [.init(name: "x-payment", value: [0x31])], body: Array("paid".utf8))

    @Test func theFirstDoesItAndTheSecondGetsItsAnswer() async throws {
        let place = try Place()
        let once = try place.once()
        #expect(try await once.begin(request).isOurs)
        await once.end(request, with: .answered(answer))
        #expect(try await once.begin(request).answer == answer)
        #expect(try await place.once().begin(request).answer == answer, "another process reads it too")
    }

    @Test("copies wait for the one that runs, whatever becomes of it")
    func copiesWait() async throws {
        for outcome in [
            IdempotencyCoordinator.Outcome.answered(answer), .answered(.tooLong(status: 200)), .unknown,
        ] {
            let once = try Place().once()
            #expect(try await once.begin(request).isOurs)
            let copies = (0..<5).map { _ in Task { await verdict(of: once) } }
            // They must be in line before it ends; that they are is seen by what they get, which no store
            // holds yet.
            try await Task.sleep(for: .milliseconds(50))
            await once.end(request, with: outcome)
            for copy in copies {
                switch (outcome, await copy.value) {
                case (.answered(let given), .success(let beginning)): #expect(beginning.answer == given)
                case (.unknown, .failure(let refusal)): #expect(refusal.code == .unavailable)
                default: Issue.record("\(outcome)")
                }
            }
        }
    }

    @Test func whatWasNotReachedIsTheNextOnes() async throws {
        let once = try Place().once()
        #expect(try await once.begin(request).isOurs)
        let copies = (0..<5).map { _ in Task { try await once.begin(request).isOurs } }
        try await Task.sleep(for: .milliseconds(50))
        await once.end(request, with: .notReached)
        // One of the five is admitted; when it ends, the next is admitted, and so on.
        for _ in 0..<4 {
            try await Task.sleep(for: .milliseconds(20))
            await once.end(request, with: .notReached)
        }
        for copy in copies { #expect(try await copy.value) }
    }

    @Test("what a process left behind when it died is not done again")
    func crash() async throws {
        let place = try Place()
        #expect(try await place.once().begin(request).isOurs)
        let restarted = try place.once()
        for _ in 0..<2 {
            let refusal = await #expect(throws: Refusal.self) { try await restarted.begin(request) }
            #expect(refusal?.code == .unavailable && refusal?.retryAfter == nil)
        }
    }

    @Test func aKeyIsForOneRequest() async throws {
        let place = try Place()
        let once = try place.once()
        var other = request
        other.digest = [3]
        #expect(try await once.begin(request).isOurs)
        await #expect(throws: Refusal.self, "while it runs") { try await once.begin(other) }
        await once.end(request, with: .answered(answer))
        let refusal = await #expect(throws: Refusal.self, "and afterwards") { try await once.begin(other) }
        #expect(refusal?.code == .forbidden)
        other.scope = .account(2)
        #expect(try await once.begin(other).isOurs, "another account's key is another")
    }

    @Test("a store that fails lets nothing through, and is asked again by the next copy")
    func failingStore() async throws {
        let place = try Place()
        let writer = FailingWriter(place.writer)
        let once = IdempotencyCoordinator(place.deployment, writer: writer, settings: IdempotencySettings())
        writer.fails = true
        let refusal = await #expect(throws: Refusal.self) { try await once.begin(request) }
        #expect(refusal?.code == .unavailable)
        writer.fails = false
        #expect(try await once.begin(request).isOurs)
        writer.fails = true
        // The answer cannot be stored. The next copy in this process does not get it, and is not forwarded.
        await once.end(request, with: .answered(answer))
        writer.fails = false
        await #expect(throws: Refusal.self) { try await once.begin(request) }
    }

    @Test func aCopyDoesNotWaitForEver() async throws {
        let running = RunningRequests()
        guard case .ours = await running.enter(request, at: 100) else { throw Refusal(.unavailable) }
        let copy = Task { await running.enter(request, at: 100) }
        try await Task.sleep(for: .milliseconds(50))
        running.expire(at: 100 + RunningRequests.patience - 1)
        running.expire(at: 100 + RunningRequests.patience)
        guard case .runsOn = await copy.value else {
            throw Refusal(.unavailable, detail: "it should have been let go")
        }
        running.leave(request, ending: .dropped)
        guard case .ours = await running.enter(request, at: 200) else { throw Refusal(.unavailable) }
    }

    @Test("answers come back as they were, and open nowhere else")
    func sealing() throws {
        let deployment = try Place().deployment
        let answers: [IdempotentAnswer] = [
            answer, .tooLong(status: 504), .whole(status: 204, fields: [], body: []),
            .whole(
                status: 200, fields: [.init(name: "", value: []), .init(name: "b", value: [0, 255])],
                body: [0]),
        ]
        for answer in answers {
            let stored = deployment.sealed(answer, to: request)
            #expect(stored.fields.isEmpty)
            #expect(try deployment.opened(stored, to: request) == answer)
        }
        let stored = deployment.sealed(answer, to: request)
        for change in [{ $0.scope = .account(2) }, { $0.key = [9] }] as [(inout IdempotentRequest) -> Void] {
            var other = request
            change(&other)
            #expect(throws: OperationalError.self) { try deployment.opened(stored, to: other) }
        }
    }

    @Test("what is known of an answer")
    func recorder() {
        func outcome(_ steps: (ResponseRecorder) -> Void) -> String {
            let recorder = ResponseRecorder(keeping: 4)
            steps(recorder)
            return "\(recorder.outcome), rest \(recorder.wantsRest ? "wanted" : "not wanted")"
        }
        let whole = "answered(CountersignAuthority.IdempotentAnswer.whole(status: 200, fields: [], body: "
        #expect(outcome { _ in } == "notReached, rest wanted")
        #expect(outcome { $0.requestMayHaveBeenProcessed() } == "unknown, rest wanted")
        #expect(outcome { $0.didBegin(status: 200, fields: []) } == "unknown, rest wanted")
        #expect(
            outcome {
                $0.didBegin(status: 200, fields: [])
                $0.didRead([1, 2, 3, 4].span)
                $0.didEnd()
            } == whole + "[1, 2, 3, 4])), rest wanted")
        #expect(
            outcome {
                $0.didBegin(status: 200, fields: [])
                $0.didRead([1, 2, 3].span)
                $0.didRead([4, 5].span)
            } == "answered(CountersignAuthority.IdempotentAnswer.tooLong(status: 200)), rest not wanted")
    }

    private func verdict(of once: IdempotencyCoordinator) async -> Result<
        IdempotencyCoordinator.Decision, Refusal
    > {
        do throws(Refusal) { return .success(try await once.begin(request)) } catch { return .failure(error) }
    }
}

extension IdempotencyCoordinator.Decision {
    fileprivate var isOurs: Bool {
        if case .ours = self { true } else { false }
    }

    fileprivate var answer: IdempotentAnswer? {
        if case .again(let answer) = self { answer } else { nil }
    }
}

/// A data folder, and as many processes on it as a test wants.
private final class Place {
    let deployment: Deployment
    let writer: DirectWriter
    private let folder: String

    init() throws {
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString)")
            .path
        let data = try DataFolder(folder, absence: .create)
        let store = SQLiteStore(path: data.database)
        deployment = try Deployment(
            folder: data, store: store,
            environment: ["COUNTERSIGN_MASTER_KEY": String(repeating: "ab", count: 32)])
        writer = DirectWriter(store: store)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func once() throws -> IdempotencyCoordinator {
        IdempotencyCoordinator(deployment, writer: writer, settings: IdempotencySettings())
    }
}

/// A writer whose disk can be made to fail.
private final class FailingWriter: StoreWriter {
    private let base: DirectWriter
    private let failing = Atomic(false)

    init(_ base: DirectWriter) { self.base = base }

    var fails: Bool {
        get { failing.load(ordering: .relaxed) }
        set { failing.store(newValue, ordering: .relaxed) }
    }

    func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        if fails { throw Refusal(.unavailable, detail: "the disk is gone") }
        return try await base.write(change)
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void) {
        if !fails { base.writeLater(change) }
    }
}
