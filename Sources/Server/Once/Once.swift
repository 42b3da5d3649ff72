import CountersignAuthority
import CountersignHTTP
import CountersignWire

/// Sees to it that a keyed request is done once: what was begun is durable before the backend hears of it, and what it
/// answered is kept. One for all loops. Source: docs/protocol.md, "Doing once".
final class Once: Sendable {
    /// Seconds for which a key is remembered.
    static let keptSeconds: Int64 = 86_400
    /// Forgotten in one transaction, which other writers wait for.
    private static let bite = 500

    /// Bytes of an answer's body, beyond which it is not kept.
    let mostKept: Int
    private let deployment: Deployment
    let writer: any StoreWriter
    private let bounds: IdempotencyBounds
    private let running = RunningRequests()
    private let handOver: HandOver

    init(
        _ deployment: Deployment, _ writer: any StoreWriter, _ settings: OnceSettings, handOver: HandOver = HandOver()
    ) {
        self.handOver = handOver
        self.deployment = deployment
        self.writer = writer
        mostKept = settings.answerBytes
        bounds = settings.bounds
    }

    enum Beginning: Sendable {
        /// It is the caller's to do, who then calls ``end(_:_:)``.
        case ours
        case again(KeptAnswer)
    }

    /// How the backend took it.
    enum Outcome: Sendable {
        case answered(KeptAnswer)
        /// It cannot have had the whole request.
        case notReached
        case unknown
    }

    /// Marks the request as begun, unless it was; waits where it runs in this process now.
    nonisolated(nonsending) func begin(_ request: IdempotentRequest) async throws(Refusal) -> Beginning {
        while true {
            switch await running.enter(request, at: EventLoop.monotonicSeconds()) {
            case .ours:
                let until = EventLoop.monotonicSeconds() + RunningRequests.patience
                while true {
                    if let beginning = try await mark(request, waitingUntil: until) { return beginning }
                    await handOver.pause()
                }
            case .ended(.answered(let answer)): return .again(answer)
            case .ended(.dropped): continue
            case .ended(.unknown): throw Once.unfinished
            case .otherRequest: throw Once.otherRequest
            case .runsOn:
                throw Once.runsOn
            }
        }
    }

    /// Leaves ``running`` unless the request is ours. Nil where it may run in another process, which serves
    /// beside this one during a restart: then it is to be called again.
    private nonisolated(nonsending) func mark(
        _ request: IdempotentRequest, waitingUntil: Int64
    ) async throws(Refusal) -> Beginning? {
        // Before the store is asked: an end of the other process in between is then found in the store.
        let mayRunElsewhere = handOver.isShared
        // Where the store does not answer, whoever waits looks for himself.
        var ending = RunningRequests.Ending.dropped
        do throws(Refusal) {
            let bounds = bounds
            switch try await writer.write({ (store) throws(Fault) in try store.begin(request, within: bounds) }) {
            case .begun: return .ours
            case .finished(let stored):
                let answer = try opened(stored, to: request)
                running.leave(request, .answered(answer))
                return .again(answer)
            case .unfinished where mayRunElsewhere:
                guard EventLoop.monotonicSeconds() >= waitingUntil else { return nil }
                throw Once.runsOn
            case .unfinished:
                ending = .unknown
                throw Once.unfinished
            case .otherRequest: throw Once.otherRequest
            case .full: throw Once.full
            }
        } catch {
            running.leave(request, ending)
            throw error
        }
    }

    private func opened(_ stored: StoredAnswer, to request: IdempotentRequest) throws(Refusal) -> KeptAnswer {
        do throws(Fault) {
            return try deployment.opened(stored, to: request)
        } catch {
            throw Refusal(.unavailable, error.message)
        }
    }

    /// Called once for each ``Beginning/ours``. Where the store fails, the request stays begun, and no copy is forwarded.
    nonisolated(nonsending) func end(_ request: IdempotentRequest, _ outcome: Outcome) async {
        switch outcome {
        case .answered(let answer):
            let stored = deployment.sealed(answer, to: request)
            try? await writer.write { (store) throws(Fault) in try store.finish(request, stored) }
            running.leave(request, .answered(answer))
        case .notReached:
            try? await writer.write { (store) throws(Fault) in try store.abandon(request) }
            running.leave(request, .dropped)
        case .unknown: running.leave(request, .unknown)
        }
    }

    /// Lets copies go that wait for too long. For a timer.
    func expire() { running.expire(at: EventLoop.monotonicSeconds()) }

    /// Forgets the keys that are older than a day, in bites, between which others write. For a timer; `now` is in whole Unix
    /// seconds.
    func forget(at now: Int64) {
        Once.forget(before: now - Once.keptSeconds, writer)
        Once.forgetUploadTickets(expiredBefore: now, writer)
    }

    private static func forget(before time: Int64, _ writer: any StoreWriter) {
        writer.writeLater { (store) throws(Fault) in
            let forgotten = try store.forgetRequests(before: time, limit: bite)
            if forgotten == bite { forget(before: time, writer) }
        }
    }

    private static let runsOn = Refusal(.unavailable, "Idempotency-Key: the request still runs", retryAfter: 5)
    private static let unfinished = Refusal(
        .unavailable,
        "Idempotency-Key: the request was begun before, and how it ended is not known; it is not sent again")
    /// Keys are forgotten as their day ends: to say when the next one is would take a search for the oldest.
    private static let full = Refusal(
        .unavailable, "Idempotency-Key: as many are remembered as may be, of this caller or in all", retryAfter: 600)
    private static let otherRequest = Refusal(.forbidden, "Idempotency-Key: it was used for another request")
}
