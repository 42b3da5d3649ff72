import CountersignAuthority
import CountersignHTTP
import CountersignWire

/// Whether this process should get traffic, and if not, why. `/ready` on the admin listener shows it.
///
/// Thread-safe: the main thread, the writer's thread and the upstream probe report to it, and the admin
/// listener's loop reads it.
final class Readiness: Sendable {
    /// What keeps a process from being ready. `/ready` lists the causes in this order.
    enum Cause: String, CaseIterable, Sendable {
        case draining, store
        /// The log of keyed requests takes no changes, until a restart.
        case requestLog = "request-log"
        /// The shared replay guard: its server, or a loop's connection to it.
        case replay
        case upstream
        /// The lease has lapsed: the store is not heard, and requests are refused.
        case nodes
        /// The clock differs from the store's.
        case clock
        /// The clock was set, and is not trusted.
        case clockSet = "clock-set"
        /// The lease has lapsed, and other nodes have another value of a setting that all must have in
        /// common.
        case settings
        /// A command of the API or the console hangs. Only a warning, because clients are served in the
        /// meantime.
        case administration
    }

    struct Reason: Sendable, Equatable {
        var cause: Cause
        /// One sentence for an operator.
        var detail: String
    }

    private let details = Locked<[Cause: String]>([:])
    private let pending = Locked<[Cause: String]>([:])
    /// What says at each question whether a cause is there.
    private let watches = Locked<[Cause: @Sendable () -> String?]>([:])
    private let pendingWatches = Locked<[Cause: @Sendable () -> String?]>([:])

    init() {}

    /// Reports that `cause` keeps the process from being ready.
    func set(_ cause: Cause, detail: String) { details.with { $0[cause] = detail } }

    /// Has `failure` say whether `cause` keeps the process from being ready, each time that is asked for.
    func watch(_ cause: Cause, failure: @escaping @Sendable () -> String?) {
        watches.with { $0[cause] = failure }
    }

    /// Reports that `cause` is gone. Draining never goes away.
    func clear(_ cause: Cause) {
        guard cause != .draining else { return }
        details.with { $0[cause] = nil }
    }

    /// Reports what may come to keep the process from being ready; nil for nothing any longer.
    func setPending(_ cause: Cause, detail: String?) { pending.with { $0[cause] = detail } }

    /// Calls `detail` for each response, to warn of a condition in which clients are still served, or in
    /// which another process would refuse the same requests. Nil means no warning.
    func watchPending(_ cause: Cause, detail: @escaping @Sendable () -> String?) {
        pendingWatches.with { $0[cause] = detail }
    }

    /// The current warnings. They do not keep the process from being ready.
    var pendingReasons: [Reason] {
        var (pending, known) = (self.pending.with { $0 }, Set(reasons.map(\.cause)))
        for (cause, detail) in pendingWatches.with({ $0 }) { pending[cause] = detail() ?? pending[cause] }
        return Cause.allCases.compactMap { cause in
            known.contains(cause) ? nil : pending[cause].map { Reason(cause: cause, detail: $0) }
        }
    }

    /// Call when the process is told to stop, before its listeners close.
    func beginDraining() { set(.draining, detail: "the process was told to stop") }

    /// Call when a successor died and this process serves in its place.
    func serveAgain() { details.with { $0[.draining] = nil } }

    /// Empty when the process is ready.
    var reasons: [Reason] {
        var details = details.with { $0 }
        for (cause, failure) in watches.with({ $0 }) { details[cause] = failure() }
        return Cause.allCases.compactMap { cause in details[cause].map { Reason(cause: cause, detail: $0) } }
    }

    /// 200 with `{"ready":true,"reasons":[]}`, or 503 with a reason for each cause. `warnings`, if there are
    /// any, do not keep the process from being ready.
    var answer: ServerResponse {
        let reasons = reasons
        func list(_ reasons: [Reason]) -> JSONValue {
            .array(reasons.map { ["cause": .string($0.cause.rawValue), "detail": .string($0.detail)] })
        }
        var members: [(name: String, value: JSONValue)] = [
            ("ready", .bool(reasons.isEmpty)), ("reasons", list(reasons)),
        ]
        let warnings = pendingReasons
        if !warnings.isEmpty { members.append(("warnings", list(warnings))) }
        let body = JSONValue.object(members)
        return ServerResponse(
            status: reasons.isEmpty ? 200 : 503, type: "application/json",
            fields: [ServerResponse.Field("Cache-Control", value: "no-store")],
            body: Array((body.text + "\n").utf8))
    }
}

/// Judges whether the store can be read and written, and reports it to ``Readiness``. The main thread calls
/// ``update(readFailure:checkWrite:)`` every other second.
///
/// Reads are judged by what the main thread reads anyway. Writes are judged by the writer's own work: only
/// after it has failed does each turn write a row of its own, until that succeeds. Two failing turns in a row
/// make the process not ready; one may be a lock that another process held.
final class StoreReadiness: Sendable {
    private static let failuresUntilDown = 2

    private let readiness: Readiness
    private let hasWriterFailed = Locked(false)
    private let failures = Locked(0)

    init(_ readiness: Readiness) { self.readiness = readiness }

    /// For the writer's thread: a change could not be made durable.
    func writerDidFail() {
        hasWriterFailed.with { $0 = true }
        readiness.setPending(.store, detail: "a change could not be written; another is tried")
    }

    /// One look. `reading` is what came of the turn's reads; `writing` writes a row.
    func update(readFailure: OperationalError?, checkWrite: () throws(OperationalError) -> Void) {
        var fault = readFailure
        if fault == nil, hasWriterFailed.with({ $0 }) {
            do {
                try checkWrite()
                hasWriterFailed.with { $0 = false }
            } catch {
                fault = error
            }
        }
        let count = failures.with { failures in
            failures = fault == nil ? 0 : min(failures + 1, StoreReadiness.failuresUntilDown)
            return failures
        }
        readiness.setPending(.store, detail: fault?.message)
        if count == 0 { readiness.clear(.store) }
        if count >= StoreReadiness.failuresUntilDown, let fault {
            readiness.set(.store, detail: fault.message)
        }
    }
}
