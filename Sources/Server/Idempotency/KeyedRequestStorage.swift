import CountersignAuthority
import CountersignGate
import CountersignMemory
import CountersignWire
import Glibc

/// Where a server keeps keyed requests, and how it moves there what is kept elsewhere.
///
/// Only one of the two places is in use at a time, by all processes. A server that takes over goes on with
/// the place of its predecessor, and moves once that has ended; one that starts alone moves before it serves.
/// A move copies everything, then changes over, then removes the originals; a copy that is there already
/// changes nothing, so a move that was cut off is done again.
///
/// Safe to share: `place` is under its lock, which a move holds.
final class KeyedRequestStorage: Sendable {
    /// The name under which a log is offered to a successor. One that does not know it must not take over,
    /// because it would look for keyed requests in the store.
    static let logOffer = "request-log"
    /// Requests that are moved together.
    private static let together = 500

    let store: any IdempotencyStore
    private let deployment: Deployment
    private let writer: any StoreWriter
    private let handOver: HandoverState
    private let readiness: Readiness
    private let note: @Sendable (String) -> Void
    private let wanted: IdempotencySettings.Storage
    private let place: Locked<IdempotencySettings.Storage>
    private let opened = Locked<LoggedRequests?>(nil)
    private let movable: MovableRequests?
    private let hasRemoved = Locked(false)

    /// `predecessor` is the place of the server that this one takes over from.
    init(
        _ wanted: IdempotencySettings.Storage, of deployment: Deployment, writer: any StoreWriter,
        predecessor: IdempotencySettings.Storage?, handOver: HandoverState, readiness: Readiness,
        note: @escaping @Sendable (String) -> Void
    ) throws(OperationalError) {
        (self.wanted, self.deployment, self.writer) = (wanted, deployment, writer)
        (self.handOver, self.readiness, self.note) = (handOver, readiness, note)
        if let start = try deployment.folder.keyedRequestsStart(), start > SystemTime().now {
            note(
                "the deployment was restored from a backup: keyed requests are refused until "
                    + CivilTime.rfc3339Text(start))
        }
        let first = predecessor ?? wanted
        place = Locked(first)
        var log: RequestLog?
        if predecessor == nil {
            log = try KeyedRequestStorage.copy(to: wanted, in: deployment, note: note)
            try KeyedRequestStorage.removeOriginals(except: wanted, of: deployment)
        }
        let logged = try KeyedRequestStorage.logged(
            first, log: log, of: deployment, readiness: readiness, note: note)
        opened.with { $0 = logged }
        let opened: any IdempotencyStore = logged ?? StoredRequests(writer)
        movable = first == wanted ? nil : MovableRequests(opened)
        store = movable ?? opened
    }

    private static func logged(
        _ place: IdempotencySettings.Storage, log: RequestLog?, of deployment: Deployment,
        readiness: Readiness, note: @escaping @Sendable (String) -> Void
    ) throws(OperationalError) -> LoggedRequests? {
        guard place == .log else { return nil }
        let opened: RequestLog
        if let log {
            opened = log
        } else {
            opened = try RequestLog(in: deployment.folder, keys: deployment.requestKeys)
        }
        return try LoggedRequests(
            opened, note: note, didFail: { readiness.set(.requestLog, detail: $0.message) })
    }

    /// What a successor is told of this place. `lockFile` is any descriptor: what is handed over has one.
    func offers(describedBy lockFile: FileDescriptor) -> [(name: String, descriptor: FileDescriptor)] {
        // Waits for a move that is under way; none begins while a successor is there.
        place.with { $0 == .log ? [(KeyedRequestStorage.logOffer, lockFile)] : [] }
    }

    /// Moves to the wanted place once no other process uses the former. Call from a timer.
    func moveIfDue() throws(OperationalError) {
        guard let movable else { return }
        try place.with { (place) throws(OperationalError) in
            guard place != wanted, !handOver.isShared, !handOver.hasHandedOver else { return }
            guard movable.pause() else { return }
            var next: (any IdempotencyStore)?
            defer { movable.resume(with: next) }
            opened.with { $0 }?.stop()
            opened.with { $0 = nil }
            do throws(OperationalError) {
                let log = try KeyedRequestStorage.copy(to: wanted, in: deployment, note: note)
                let logged = try KeyedRequestStorage.logged(
                    wanted, log: log, of: deployment, readiness: readiness, note: note)
                opened.with { $0 = logged }
                readiness.clear(.requestLog)
                next = logged ?? StoredRequests(writer)
                place = wanted
            } catch {
                // The former place has everything still.
                let logged = try KeyedRequestStorage.logged(
                    place, log: nil, of: deployment, readiness: readiness, note: note)
                opened.with { $0 = logged }
                readiness.clear(.requestLog)
                next = logged ?? StoredRequests(writer)
                throw error
            }
        }
        if !hasRemoved.with({ $0 }), place.with({ $0 }) == wanted {
            try KeyedRequestStorage.removeOriginals(except: wanted, of: deployment)
            hasRemoved.with { $0 = true }
        }
    }

    /// Writes what waits. Call once nothing more is begun.
    func stop() { opened.with { $0 }?.stop() }

    // MARK: Moving

    /// Copies what the other place has; returns the log if that is the wanted one.
    private static func copy(
        to place: IdempotencySettings.Storage, in deployment: Deployment,
        note: @Sendable (String) -> Void
    ) throws(OperationalError) -> RequestLog? {
        switch place {
        case .log:
            let log = try RequestLog(in: deployment.folder, keys: deployment.requestKeys)
            let count = try copyRows(of: deployment.store, to: log)
            if count > 0 { note("\(count) keyed requests were moved from the store to the log") }
            return log
        case .store:
            guard let log = try deployment.requestLog() else { return nil }
            var count = 0
            let store = deployment.store
            try log.forEachRequest(together: together) { (requests) throws(OperationalError) in
                try store.adopt(requests)
                count += requests.count
            }
            note("\(count) keyed requests were moved from the log to the store")
            return nil
        }
    }

    private static func copyRows(of store: any Store, to log: RequestLog) throws(OperationalError) -> Int {
        var position: Int64 = 0
        var count = 0
        while true {
            let (requests, last) = try store.heldRequests(after: position, limit: together)
            if requests.isEmpty { return count }
            try log.adopt(requests)
            count += requests.count
            position = last
        }
    }

    /// Only after the copies are in use, or no place is yet.
    private static func removeOriginals(
        except place: IdempotencySettings.Storage, of deployment: Deployment
    ) throws(OperationalError) {
        switch place {
        case .log:
            while try deployment.store.forgetRequests(before: Int64.max, limit: together) > 0 {}
        case .store:
            guard try RequestLog.exists(in: deployment.folder) else { return }
            try RequestLog.remove(in: deployment.folder)
        }
    }
}

/// A store of keyed requests that is replaced by another one while requests run: during the change, changes
/// wait.
private final class MovableRequests: IdempotencyStore {
    private struct State {
        var current: any IdempotencyStore
        /// During a change.
        var isPaused = false
        /// Calls that use the current store.
        var calls = 0
        var waiting: [UnsafeContinuation<Void, Never>] = []
    }

    private let state: Locked<State>

    init(_ store: any IdempotencyStore) { state = Locked(State(current: store)) }

    func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds
    ) async throws(Refusal) -> IdempotencyState {
        let store = await enter()
        defer { leave() }
        return try await store.begin(request, within: bounds)
    }

    func finish(_ request: IdempotentRequest, with answer: StoredAnswer) async throws(Refusal) {
        let store = await enter()
        defer { leave() }
        try await store.finish(request, with: answer)
    }

    func abandon(_ request: IdempotentRequest) async {
        let store = await enter()
        defer { leave() }
        await store.abandon(request)
    }

    func forget(before time: Int64) { state.with { $0.isPaused ? nil : $0.current }?.forget(before: time) }

    private func enter() async -> any IdempotencyStore {
        while true {
            if let store = state.with({ (state) -> (any IdempotencyStore)? in
                guard !state.isPaused else { return nil }
                state.calls += 1
                return state.current
            }) {
                return store
            }
            await withUnsafeContinuation { continuation in
                let isWaiting = state.with { state in
                    guard state.isPaused else { return false }
                    state.waiting.append(continuation)
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        }
    }

    private func leave() { state.with { $0.calls -= 1 } }

    /// Lets new calls wait, and waits for those that are under way, which is a matter of one write. False if
    /// they do not end.
    func pause() -> Bool {
        state.with { $0.isPaused = true }
        for _ in 0..<3_000 {
            if state.with({ $0.calls }) == 0 { return true }
            usleep(1_000)
        }
        resume(with: state.with { $0.current })
        return false
    }

    /// Nil if neither place can be used any more: changes wait, and nothing is forwarded.
    func resume(with store: (any IdempotencyStore)?) {
        guard let store else { return }
        let waiting = state.with { state in
            (state.current, state.isPaused) = (store, false)
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
