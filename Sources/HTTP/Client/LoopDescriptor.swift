import CEvent
import Glibc

/// Watches a descriptor that another library owns: calls a body whenever it can be read, and after
/// ``awaitWriting()`` once when it can be written. Confined to its loop, and ended before the descriptor is
/// closed.
package final class LoopDescriptor: @unchecked Sendable {
    private let loop: EventLoop
    private let body: () -> Void
    private var reading: OpaquePointer?
    private var writing: OpaquePointer?

    package init(_ loop: EventLoop, descriptor: Int32, body: @escaping () -> Void) {
        self.loop = loop
        self.body = body
        let context = Unmanaged.passUnretained(self).toOpaque()
        reading = event_new(
            loop.base, descriptor, Int16(EV_READ | EV_PERSIST),
            { _, _, context in LoopDescriptor.call(context) }, context)
        writing = event_new(
            loop.base, descriptor, Int16(EV_WRITE), { _, _, context in LoopDescriptor.call(context) }, context
        )
        if let reading { event_add(reading, nil) }
    }

    deinit { end() }

    package func awaitWriting() { if let writing { event_add(writing, nil) } }

    package func end() {
        if let reading { event_free(reading) }
        if let writing { event_free(writing) }
        (reading, writing) = (nil, nil)
    }

    private static func call(_ context: UnsafeMutableRawPointer?) {
        // `deinit` frees the events, so the watcher of a callback is alive; the body may end it.
        let watcher = Unmanaged<LoopDescriptor>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
        let loop = watcher.loop
        watcher.body()
        loop.endUncharged()
    }
}
