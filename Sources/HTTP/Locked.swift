/// A value that threads share, touched only while a lock is held. Hold it for a look-up or an update, never across I/O.
package final class Locked<Value>: @unchecked Sendable {
    private let lock = Lock()
    private var value: Value

    package init(_ value: Value) { self.value = value }

    package func withValue<Result>(_ body: (inout Value) -> Result) -> Result { lock.hold { body(&value) } }
}
