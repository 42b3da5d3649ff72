import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSQL
import CountersignWire
import Foundation
import Synchronization
import Testing
import Waiting

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
        await once.end(request, with: .answered(EncodedAnswer(answer)))
        #expect(try await once.begin(request).answer == answer)
        #expect(try await place.once().begin(request).answer == answer, "another process reads it too")
    }

    @Test("copies wait for the one that runs, whatever becomes of it")
    func copiesWait() async throws {
        for outcome in [
            IdempotencyCoordinator.Outcome.answered(EncodedAnswer(answer)),
            .answered(EncodedAnswer(tooLongWithStatus: 200)), .unknown,
        ] {
            let once = try Place().once()
            #expect(try await once.begin(request).isOurs)
            let copies = (0..<5).map { _ in Task { await verdict(of: once) } }
            await wait(for: 5, in: once.running)
            await once.end(request, with: outcome)
            for copy in copies {
                switch (outcome, await copy.value) {
                case (.answered(let given), .success(let beginning)):
                    #expect(beginning.answer == given.answer)
                case (.unknown, .failure(let refusal)): #expect(refusal.code == .unavailable)
                default: Issue.record("\(outcome)")
                }
            }
        }
    }

    /// Until so many copies are in line.
    private func wait(for copies: Int, in running: RunningRequests) async {
        await until("copies in line") { running.waiting == copies }
    }

    @Test func whatWasNotReachedIsTheNextOnes() async throws {
        let once = try Place().once()
        #expect(try await once.begin(request).isOurs)
        let copies = (0..<5).map { _ in Task { try await once.begin(request).isOurs } }
        await wait(for: 5, in: once.running)
        await once.end(request, with: .notReached)
        // One of the five is admitted; when it ends, the next is admitted, and so on.
        for number in 1...4 {
            await wait(for: 5 - number, in: once.running)
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
        await once.end(request, with: .answered(EncodedAnswer(answer)))
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
        await once.end(request, with: .answered(EncodedAnswer(answer)))
        writer.fails = false
        await #expect(throws: Refusal.self) { try await once.begin(request) }
    }

    @Test func aCopyDoesNotWaitForEver() async throws {
        let running = RunningRequests()
        guard case .ours = await running.enter(request, at: 100) else { throw Refusal(.unavailable) }
        let copy = Task { await running.enter(request, at: 100) }
        await wait(for: 1, in: running)
        running.expire(at: 100 + RunningRequests.patience - 1)
        #expect(running.waiting == 1)
        running.expire(at: 100 + RunningRequests.patience)
        guard case .runsOn = await copy.value else {
            throw Refusal(.unavailable, detail: "it should have been let go")
        }
        running.leave(request, ending: .dropped)
        guard case .ours = await running.enter(request, at: 200) else { throw Refusal(.unavailable) }
    }

    @Test("a copy waits while the request may run at another node, and is not forwarded")
    func aCopyAtAnotherNode() async throws {
        let (place, others) = (try Place(), HandoverState())
        let writer = FailingWriter(place.writer)
        let first = try place.once()
        // Its clock stands still: a copy waits for 20 seconds at most.
        let second = IdempotencyCoordinator(
            place.deployment, writer: writer, settings: IdempotencySettings(), handOver: others,
            monotonicSeconds: { 0 })
        #expect(try await first.begin(request).isOurs)
        await #expect(throws: Refusal.self) { try await second.begin(request) }
        others.hasOtherNodes = true
        let copy = Task { try await second.begin(request) }
        // The request whose copy was refused above, and the copy twice: it waits after the first.
        await until("the copy waits") { writer.writes >= 3 }
        await first.end(request, with: .answered(EncodedAnswer(answer)))
        guard case .again(let again) = try await copy.value else {
            throw Refusal(.unavailable, detail: "it would be forwarded twice")
        }
        #expect(again == answer)
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
            let stored = deployment.sealed(EncodedAnswer(answer), to: request)
            #expect(stored.fields.isEmpty)
            #expect(try deployment.opened(stored, to: request) == answer)
        }
        let stored = deployment.sealed(EncodedAnswer(answer), to: request)
        for change in [{ $0.scope = .account(2) }, { $0.key = [9] }] as [(inout IdempotentRequest) -> Void] {
            var other = request
            change(&other)
            #expect(throws: OperationalError.self) { try deployment.opened(stored, to: other) }
        }
    }

    @Test("a request begins without a task, unless it has more to wait for than the store")
    func withoutATask() throws {
        let (store, handOver) = (StubStore(), HandoverState())
        let once = try Place().once(store, handOver: handOver)
        func begins() -> Bool { once.beginIfReady(request, reportingTo: IgnoringReceiver()) }
        #expect(begins() && store.calls == ["begin"])
        #expect(!begins(), "a copy runs")
        // What the store says of it ends it, but for the one that is to run.
        #expect(try once.decide(request, after: .success(.begun)).isOurs)
        #expect(!begins())
        for state in [IdempotencyState.unfinished, .otherRequest, .full] {
            #expect(throws: Refusal.self) { try once.decide(request, after: .success(state)) }
            #expect(begins())
        }
        #expect(throws: Refusal.self) { try once.decide(request, after: .failure(Refusal(.unavailable))) }
        handOver.begin()
        #expect(!begins(), "it may run in the other process")
        handOver.end()
        #expect(begins())
        #expect(try !Place().once().beginIfReady(request, reportingTo: IgnoringReceiver()), "rows")
    }

    @Test("a request ends without a task, unless its answer finds no room")
    func endWithoutATask() async throws {
        let store = StubStore()
        let once = try Place().once(store)
        func begins() -> Bool { once.beginIfReady(request, reportingTo: IgnoringReceiver()) }
        #expect(begins())
        store.hasRoom = false
        #expect(!once.endIfReady(request, with: .answered(EncodedAnswer(answer))))
        #expect(!begins(), "it has not ended")
        await once.end(request, with: .answered(EncodedAnswer(answer)))
        store.hasRoom = true
        #expect(begins() && once.endIfReady(request, with: .answered(EncodedAnswer(answer))))
        #expect(begins() && once.endIfReady(request, with: .notReached))
        #expect(begins() && once.endIfReady(request, with: .unknown))
        #expect(
            store.calls == ["begin", "wait", "finish", "begin", "finish", "begin", "abandon", "begin"])
    }

    @Test("what is known of an answer")
    func recorder() {
        func outcome(_ steps: (ResponseRecorder) -> Void) -> String {
            let recorder = ResponseRecorder(keeping: 4)
            steps(recorder)
            let rest = recorder.wantsRest ? "wanted" : "not wanted"
            guard case .answered(let answer) = recorder.outcome else {
                return "\(recorder.outcome), rest \(rest)"
            }
            return "answered(\(answer.answer)), rest \(rest)"
        }
        let whole = "answered(whole(status: 200, fields: [], body: "
        #expect(outcome { _ in } == "notReached, rest wanted")
        #expect(outcome { $0.requestMayHaveBeenProcessed() } == "unknown, rest wanted")
        #expect(
            outcome { $0.didBegin(status: 200, fields: UpstreamResponseFields([])) } == "unknown, rest wanted"
        )
        #expect(
            outcome {
                $0.didBegin(status: 200, fields: UpstreamResponseFields([]))
                $0.didRead([1, 2, 3, 4].span)
                $0.didEnd()
            } == whole + "[1, 2, 3, 4])), rest wanted")
        #expect(
            outcome {
                $0.didBegin(status: 200, fields: UpstreamResponseFields([]))
                $0.didRead([1, 2, 3].span)
                $0.didRead([4, 5].span)
            } == "answered(tooLong(status: 200)), rest not wanted")
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
        let store = StorePlace.sqlite(path: data.database).open()
        deployment = try Deployment(
            folder: data, store: store,
            environment: ["COUNTERSIGN_MASTER_KEY": String(repeating: "ab", count: 32)])
        writer = DirectWriter(store: store)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func once(
        _ store: (any IdempotencyStore)? = nil, handOver: HandoverState = HandoverState()
    ) throws -> IdempotencyCoordinator {
        IdempotencyCoordinator(
            deployment, store: store, writer: writer, settings: IdempotencySettings(), handOver: handOver)
    }
}

/// A writer whose disk can be made to fail.
private final class FailingWriter: StoreWriter {
    private let base: DirectWriter
    private let failing = Atomic(false)
    private let written = Atomic(0)

    /// Changes that were begun.
    var writes: Int { written.load(ordering: .relaxed) }

    init(_ base: DirectWriter) { self.base = base }

    var fails: Bool {
        get { failing.load(ordering: .relaxed) }
        set { failing.store(newValue, ordering: .relaxed) }
    }

    func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        written.add(1, ordering: .relaxed)
        if fails { throw Refusal(.unavailable, detail: "the disk is gone") }
        return try await base.write(change)
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void) {
        if !fails { base.writeLater(change) }
    }
}

/// A store that notes how it is called, and keeps nothing.
private final class StubStore: ImmediateIdempotencyStore, @unchecked Sendable {
    private(set) var calls: [String] = []
    var hasRoom = true

    func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds,
        reportingTo receiver: any IdempotencyStateReceiver
    ) { calls.append("begin") }

    func finishIfReady(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) -> Bool {
        calls.append(hasRoom ? "finish" : "wait")
        return hasRoom
    }

    func abandonAtOnce(_ request: IdempotentRequest) { calls.append("abandon") }

    func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds
    ) async throws(Refusal) -> IdempotencyState { .begun }

    func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) async throws(Refusal) {
        calls.append("finish")
    }

    func abandon(_ request: IdempotentRequest) async { calls.append("abandon") }
    func forget(before time: TrustedTime) {}
}

private final class IgnoringReceiver: IdempotencyStateReceiver {
    func didBegin(_ result: Result<IdempotencyState, Refusal>) {}
}
