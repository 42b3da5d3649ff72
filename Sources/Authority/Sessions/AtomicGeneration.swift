import Synchronization

/// A generation that every request compares with and few change.
final class AtomicGeneration: Sendable {
    private let number: Atomic<UInt64>

    init(_ value: UInt64) { number = Atomic(value) }

    var value: UInt64 {
        get { number.load(ordering: .acquiring) }
        set { number.store(newValue, ordering: .releasing) }
    }
}
