import CEvent
import Glibc

/// Waits on a loop for a time of milliseconds, or until it is rung. Confined to its loop, where at most one
/// task waits at a time.
package final class LoopAlarm: @unchecked Sendable {
    private let loop: EventLoop
    private var event: OpaquePointer?
    private var continuation: UnsafeContinuation<Void, Never>?
    /// Whether it was rung while no task waited: the next wait ends at once.
    private var hasRung = false

    package init(_ loop: EventLoop) {
        self.loop = loop
        event = event_new(
            loop.base, -1, 0,
            { _, _, context in
                // `deinit` frees the event, so the alarm of a callback is alive.
                let alarm = Unmanaged<LoopAlarm>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
                alarm.end()
                alarm.loop.endUncharged()
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { if let event { event_free(event) } }

    package func wait(milliseconds: Int) async {
        if hasRung || continuation != nil {
            hasRung = false
            return
        }
        var time = timeval(
            tv_sec: milliseconds / 1_000, tv_usec: suseconds_t(milliseconds % 1_000 * 1_000))
        guard let event, event_add(event, &time) == 0 else { return }
        await withUnsafeContinuation { continuation = $0 }
    }

    /// Ends the wait, or the next one.
    package func ring() {
        if continuation == nil { hasRung = true }
        if let event { event_del(event) }
        end()
    }

    private func end() {
        continuation.take()?.resume()
    }
}

/// Calls a body every few milliseconds while it is started. Confined to its loop.
package final class LoopTimer: @unchecked Sendable {
    private let loop: EventLoop
    private let body: () -> Void
    private var interval: timeval
    private var event: OpaquePointer?
    private var isStarted = false

    package init(_ loop: EventLoop, milliseconds: Int, body: @escaping () -> Void) {
        self.loop = loop
        self.body = body
        interval = timeval(tv_sec: milliseconds / 1_000, tv_usec: suseconds_t(milliseconds % 1_000 * 1_000))
        event = event_new(
            loop.base, -1, Int16(EV_PERSIST),
            { _, _, context in
                // `deinit` frees the event, so the timer of a callback is alive.
                let timer = Unmanaged<LoopTimer>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
                timer.body()
                timer.loop.endUncharged()
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { if let event { event_free(event) } }

    package func start() {
        guard !isStarted, let event else { return }
        isStarted = event_add(event, &interval) == 0
    }

    package func stop() {
        guard isStarted, let event else { return }
        event_del(event)
        isStarted = false
    }
}
