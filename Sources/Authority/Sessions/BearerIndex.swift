import CountersignWire

/// Bearer sessions by the beginning of their tokens' hashes.
///
/// Safe to share: the table is touched under the lock.
final class BearerIndex: @unchecked Sendable {
    private let lock = ReadWriteLock()
    private var sessions: [UInt64: SessionID] = [:]

    func session(named name: UInt64) -> SessionID? { lock.read { sessions[name] } }

    /// `before` is what stood in the place of `after`; nil where nothing did, or will.
    func replace(_ before: LiveSession?, with after: LiveSession?) {
        let (old, new) = (before?.tokenNames ?? [], after?.tokenNames ?? [])
        guard old != new else { return }
        lock.write {
            for name in old where !new.contains(name) { sessions[name] = nil }
            for name in new { sessions[name] = after?.id }
        }
    }
}
