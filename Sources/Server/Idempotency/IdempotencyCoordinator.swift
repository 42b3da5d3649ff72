import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignSchemes
import CountersignWire

/// Ensures that a keyed request runs once: its beginning is durable before the request reaches the backend,
/// and its answer is kept. One for all loops. Source: docs/protocol.md, "Idempotent requests".
final class IdempotencyCoordinator: Sendable {
    /// Seconds for which a key is remembered.
    static let keptSeconds = Int64(KeyRetention.highest)
    /// Bytes of an answer's body; a longer body is not kept.
    let largestKeptBody: Int
    /// The response field that states how long clients can rely on a key.
    let retention: ServerResponse.Field
    private let deployment: Deployment
    private let store: any IdempotencyStore
    /// The same store, if it can be used without a task.
    private let immediateStore: (any ImmediateIdempotencyStore)?
    /// Takes the changes of upload tickets.
    let writer: any StoreWriter
    private let limits: IdempotencyBounds
    /// Returns the current ``IdempotencyBounds/latest``.
    private let latestTime: @Sendable () -> Int64?
    let running = RunningRequests()
    private let handOver: HandoverState
    /// Requests that begin before this time (Unix seconds) are refused: a restored deployment does not know
    /// which of them ran. 0 for none.
    private let start: Int64
    private let monotonicSeconds: @Sendable () -> Int64

    /// Without a `store`, keyed requests are rows of the writer's store.
    init(
        _ deployment: Deployment, store: (any IdempotencyStore)? = nil, writer: any StoreWriter,
        settings: IdempotencySettings, handOver: HandoverState = HandoverState(),
        monotonicSeconds: @escaping @Sendable () -> Int64 = EventLoop.monotonicSeconds,
        latestTime: @escaping @Sendable () -> Int64? = { .max }
    ) {
        self.handOver = handOver
        self.monotonicSeconds = monotonicSeconds
        start = IdempotencyCoordinator.start(of: deployment)
        self.store = store ?? StoredRequests(writer)
        immediateStore = store as? any ImmediateIdempotencyStore
        self.deployment = deployment
        self.writer = writer
        largestKeptBody = settings.answerBytes
        limits = settings.bounds
        self.latestTime = latestTime
        retention = settings.retention
    }

    private var bounds: IdempotencyBounds {
        var bounds = limits
        bounds.latest = latestTime()
        return bounds
    }

    enum Decision: Sendable {
        /// The caller runs the request, and then calls ``end(_:with:)``.
        case ours
        case again(IdempotentAnswer)
    }

    /// What the backend did with the request.
    enum Outcome: Sendable {
        case answered(EncodedAnswer)
        /// The backend cannot have received the whole request.
        case notReached
        case unknown
    }

    /// A file that cannot be read refuses all; a server does not start with one (``KeyedRequestStorage``).
    private static func start(of deployment: Deployment) -> Int64 {
        do {
            return try deployment.keyedRequestsStart(keptFor: keptSeconds)
        } catch {
            return Int64.max
        }
    }

    /// Marks the request as begun, unless it was; waits while a copy runs in this process.
    func begin(_ request: IdempotentRequest) async throws(Refusal) -> Decision {
        guard request.begun >= start else { throw IdempotencyCoordinator.restored(request, until: start) }
        while true {
            switch await running.enter(request, at: monotonicSeconds()) {
            case .ours:
                let until = monotonicSeconds() + RunningRequests.patience
                var attempts = 0
                while true {
                    if let beginning = try await mark(request, waitingUntil: until) { return beginning }
                    attempts += 1
                    await handOver.pause(after: attempts)
                }
            case .ended(.answered(let answer)): return .again(answer.answer)
            case .ended(.dropped): continue
            case .ended(.unknown): throw IdempotencyCoordinator.unfinished
            case .otherRequest: throw IdempotencyCoordinator.otherRequest
            case .runsOn:
                throw IdempotencyCoordinator.runsOn
            }
        }
    }

    /// Leaves ``running`` unless the caller is to run the request. Nil if the request may run in another
    /// process, which serves besides this one during a restart: then call again.
    private func mark(
        _ request: IdempotentRequest, waitingUntil: Int64
    ) async throws(Refusal) -> Decision? {
        // Read before the store: if the other process ends in between, the store then contains the result.
        let mayRunElsewhere = handOver.isShared || handOver.hasOtherNodes
        let result: Result<IdempotencyState, Refusal>
        do throws(Refusal) {
            result = .success(try await store.begin(request, within: bounds))
        } catch {
            result = .failure(error)
        }
        guard mayRunElsewhere, case .success(.unfinished) = result else {
            return try decide(request, after: result)
        }
        guard monotonicSeconds() >= waitingUntil else { return nil }
        return try decide(request, after: .failure(IdempotencyCoordinator.runsOn))
    }

    /// Begins what ``begin(_:)`` does, and returns at once: `receiver` gets what the store says, for
    /// ``decide(_:after:)``. False, and nothing is done, if there is something else to wait for.
    func beginIfReady(
        _ request: IdempotentRequest, reportingTo receiver: any IdempotencyStateReceiver
    ) -> Bool {
        guard request.begun >= start else { return false }
        guard let store = immediateStore, !handOver.isShared, running.enterIfFirst(request) else {
            return false
        }
        store.begin(request, within: bounds, reportingTo: receiver)
        return true
    }

    /// What the store's result means for the request. Leaves ``running`` unless the caller is to run it.
    func decide(
        _ request: IdempotentRequest, after result: Result<IdempotencyState, Refusal>
    ) throws(Refusal) -> Decision {
        // If the store fails, each waiting copy reads the store itself.
        var ending = RunningRequests.Outcome.dropped
        do throws(Refusal) {
            switch try result.get() {
            case .begun: return .ours
            case .finished(let stored):
                let answer = try opened(stored, to: request)
                running.leave(request, ending: .answered(EncodedAnswer(answer)))
                return .again(answer)
            case .unfinished:
                ending = .unknown
                throw IdempotencyCoordinator.unfinished
            case .otherRequest: throw IdempotencyCoordinator.otherRequest
            case .full: throw IdempotencyCoordinator.full
            }
        } catch {
            running.leave(request, ending: ending)
            throw error
        }
    }

    private func opened(_ stored: StoredAnswer, to request: IdempotentRequest) throws(Refusal)
        -> IdempotentAnswer
    {
        do {
            return try deployment.opened(stored, to: request)
        } catch {
            throw Refusal(.unavailable, detail: error.message)
        }
    }

    /// Called once for each ``Decision/ours``. If the store fails, the request stays begun, and no copy is
    /// forwarded.
    func end(_ request: IdempotentRequest, with outcome: Outcome) async {
        switch outcome {
        case .answered(let answer):
            do {
                try await keep(answer, to: request)
            } catch {
                // The store refuses what was sealed just before the master key was replaced.
                try? await keep(answer, to: request)
            }
            running.leave(request, ending: .answered(answer))
        case .notReached:
            await store.abandon(request)
            running.leave(request, ending: .dropped)
        case .unknown: running.leave(request, ending: .unknown)
        }
    }

    /// As ``end(_:with:)``; false, and nothing is done, if the caller would have to wait.
    func endIfReady(_ request: IdempotentRequest, with outcome: Outcome) -> Bool {
        guard let store = immediateStore else { return false }
        switch outcome {
        case .answered(let answer):
            let sealed = deployment.sealed(answer, to: request)
            guard store.finishIfReady(request, with: sealed, within: limits) else { return false }
            running.leave(request, ending: .answered(answer))
        case .notReached:
            store.abandonAtOnce(request)
            running.leave(request, ending: .dropped)
        case .unknown: running.leave(request, ending: .unknown)
        }
        return true
    }

    private func keep(_ answer: EncodedAnswer, to request: IdempotentRequest) async throws(Refusal) {
        try await store.finish(request, with: deployment.sealed(answer, to: request), within: limits)
    }

    /// Ends the waits of copies that have waited too long. Call from a timer.
    func expire() { running.expire(at: monotonicSeconds()) }

    /// Deletes the keys that are older than a day, and tickets and codes that have expired. Call from a
    /// timer.
    func forget(at now: TrustedTime) {
        store.forget(before: now.earlier(by: IdempotencyCoordinator.keptSeconds))
        writer.forgetExpiredRows(before: now)
    }

    private static func restored(_ request: IdempotentRequest, until start: Int64) -> Refusal {
        Refusal(
            .unavailable,
            detail:
                "Idempotency-Key: the gateway was restored from a backup, and cannot tell whether this "
                + "request was sent before",
            retryAfter: Int(min(max(start - request.begun, 1), IdempotencyCoordinator.keptSeconds)))
    }

    private static let runsOn = Refusal(
        .unavailable, detail: "Idempotency-Key: the request still runs", retryAfter: 5)
    private static let unfinished = Refusal(
        .unavailable,
        detail:
            "Idempotency-Key: the request was begun before, and its outcome is not known; "
            + "it is not sent again"
    )
    /// As keys grow older than the floor, room becomes free, usually long before the retry time.
    private static let full = Refusal(
        .unavailable, detail: "Idempotency-Key: as many are remembered as may be, of this caller or in all",
        retryAfter: 60)
    private static let otherRequest = Refusal(
        .forbidden, detail: "Idempotency-Key: it was used for another request")
}

/// Keyed requests that run in this process now, and the copies that wait for their outcome. One for all
/// loops.
///
/// Safe to share: everything is touched under the lock. A waiting copy occupies a connection, of which there
/// is a bounded number, and waits at most ``patience``.
final class RunningRequests: Sendable {
    /// How a request ended, for its waiting copies.
    enum Outcome: Sendable {
        case answered(EncodedAnswer)
        /// The request did not run: a waiting copy may try again.
        case dropped
        case unknown
    }

    enum Admission: Sendable {
        /// No copy runs: the caller now runs the request, and must call ``leave(_:ending:)``.
        case ours
        case ended(Outcome)
        /// Another request runs under the same key.
        case otherRequest
        /// The request still runs, and this copy has waited long enough.
        case runsOn
    }

    /// Seconds that a copy waits, plus or minus the interval of ``expire(at:)``.
    static let patience: Int64 = 20

    private struct Name: Hashable {
        var scope: IdempotencyScope
        var key: [UInt8]

        init(_ request: IdempotentRequest) {
            scope = request.scope
            key = request.key
        }

        /// The key is a digest: its first bytes tell keys apart.
        func hash(into hasher: inout Hasher) {
            var part: UInt64 = 0
            for byte in key.prefix(8) { part = part << 8 | UInt64(byte) }
            hasher.combine(part)
        }
    }

    private struct Waiter {
        var until: Int64
        var continuation: UnsafeContinuation<Admission, Never>
    }

    private struct Entry {
        var digest: [UInt8]
        var waiters: [Waiter] = []
    }

    private let running = Locked<[Name: Entry]>([:])

    /// Copies that wait.
    var waiting: Int { running.with { $0.values.reduce(0) { $0 + $1.waiters.count } } }

    /// `now` is in seconds of a monotonic clock.
    func enter(_ request: IdempotentRequest, at now: Int64) async -> Admission {
        await withUnsafeContinuation { continuation in
            let entrance = running.with { (entries) -> Admission? in
                let name = Name(request)
                guard let entry = entries[name] else {
                    entries[name] = Entry(digest: request.digest)
                    return .ours
                }
                guard entry.digest == request.digest else { return .otherRequest }
                let waiter = Waiter(until: now + RunningRequests.patience, continuation: continuation)
                entries[name]?.waiters.append(waiter)
                return nil
            }
            if let entrance { continuation.resume(returning: entrance) }
        }
    }

    /// Whether no copy runs: then the caller now runs the request, as after ``Admission/ours``.
    func enterIfFirst(_ request: IdempotentRequest) -> Bool {
        running.with { entries in
            let name = Name(request)
            guard entries[name] == nil else { return false }
            entries[name] = Entry(digest: request.digest)
            return true
        }
    }

    /// Called once for each ``Admission/ours`` that ``enter(_:at:)`` returns.
    func leave(_ request: IdempotentRequest, ending: Outcome) {
        let waiters = running.with { entries in entries.removeValue(forKey: Name(request))?.waiters ?? [] }
        for waiter in waiters { waiter.continuation.resume(returning: .ended(ending)) }
    }

    /// Ends the waits that are over their time.
    func expire(at now: Int64) {
        let late = running.with { entries in
            var late: [Waiter] = []
            for name in Array(entries.keys) {
                guard let entry = entries[name], entry.waiters.contains(where: { $0.until <= now }) else {
                    continue
                }
                late += entry.waiters.filter { $0.until <= now }
                entries[name]?.waiters.removeAll { $0.until <= now }
            }
            return late
        }
        for waiter in late { waiter.continuation.resume(returning: .runsOn) }
    }
}
