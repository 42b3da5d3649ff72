import CountersignAuthority
import CountersignSeal
import CountersignWire

/// The epoch in the durable store, for all nodes. Each change is a compare-and-swap: of several nodes that
/// find a loss, one begins the next epoch, and the others take it over.
package struct ReplayEpochRecord: Sendable {
    private let store: any MetaStore
    /// The record is authenticated, so that a program which can write to the store cannot lower the floor. An
    /// older record does not help it where Redis is the guard, which does not have its token; a program that
    /// can write to PostgreSQL can put back both there.
    private let key: HMACSHA256
    /// The guard that the epochs are of.
    private let kind: SharedReplayKind

    package init(_ store: any MetaStore, of kind: SharedReplayKind, secret: Secret) {
        (self.store, self.kind) = (store, kind)
        let part = HKDFSHA512.expand(secret, info: Array("countersign/1 replay epoch".utf8), count: 32)
        key = part.withExposedBytes { HMACSHA256(key: $0) }
    }

    /// What the store has; nil if this kind has not been the deployment's guard since another one was.
    package func current() throws(OperationalError) -> ReplayEpoch? {
        guard try SharedReplayKind.inUse(in: store) == kind else { return nil }
        return try latest()
    }

    /// The same from values that were read in another way: ``MetaName/replayFile`` and
    /// ``MetaName/replayEpoch``.
    func current(inMark mark: [UInt8]?, value: [UInt8]?) throws(OperationalError) -> ReplayEpoch? {
        guard mark == kind.mark, let value else { return nil }
        return try opened(value)
    }

    /// The first epoch since another guard was used, which may have admitted anything up to `formerFloor`. A
    /// deployment that never served has admitted nothing. Nil if another node has changed the record
    /// meanwhile.
    func begin(
        for identity: ReplayDataSet, on serverID: String? = nil, evicted: Int64 = 0, need: ReplayRetention,
        formerFloor: () -> Int64, now: Int64
    ) throws(OperationalError) -> ReplayEpoch? {
        let kept = try store.value(of: .replayEpoch)
        let former = try store.value(of: .replayFile)
        var epoch: ReplayEpoch
        if let last = try latest() {
            epoch = last.next(for: identity, on: serverID, evicted: evicted, need: need, now: now)
        } else {
            epoch = ReplayEpoch(
                number: 1, identity: identity, on: serverID, evicted: evicted, floor: 0, need: need)
        }
        if former != nil {
            let floor = max(formerFloor(), ReplayEpoch.floor(at: now, window: need.window))
            epoch.floor = max(epoch.floor, min(floor, Int64.max / 4))
        }
        let stored = try exchange(
            from: kept, to: epoch, with: [(.replayFile, kind.mark)])
        return stored == epoch ? epoch : nil
    }

    /// Puts `next` in the place of `epoch`; returns what the store has then.
    func replace(_ epoch: ReplayEpoch, by next: ReplayEpoch) throws(OperationalError) -> ReplayEpoch {
        try exchange(from: sealed(epoch), to: next, with: [])
    }

    private func exchange(
        from old: [UInt8]?, to next: ReplayEpoch, with others: [(name: MetaName, value: [UInt8])]
    ) throws(OperationalError) -> ReplayEpoch {
        try opened(store.exchange(.replayEpoch, from: old, to: sealed(next), with: others))
    }

    private func latest() throws(OperationalError) -> ReplayEpoch? {
        guard let bytes = try store.value(of: .replayEpoch) else { return nil }
        return try opened(bytes)
    }

    /// The text, followed by its MAC in hexadecimal digits.
    func sealed(_ epoch: ReplayEpoch) -> [UInt8] {
        let text = Array(epoch.text.utf8)
        return text + Array(" \(Hex.encode(key.authenticate(text.span).span))".utf8)
    }

    private func opened(_ bytes: [UInt8]) throws(OperationalError) -> ReplayEpoch {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let space = text.lastIndex(of: " "), let epoch = ReplayEpoch(String(text[..<space])),
            ConstantTime.equals(sealed(epoch).span, bytes.span) == .equal
        else {
            throw OperationalError(.failed, message: "replay epoch: its value in the store was altered")
        }
        return epoch
    }
}

extension KeyedHash {
    /// By a part of the deployment's own secret.
    init(_ secret: Secret, for purpose: String) {
        let part = HKDFSHA512.expand(secret, info: Array("countersign/1 \(purpose)".utf8), count: 16)
        self = part.withExposedBytes { bytes in KeyedHash(key: KeyedHash.Key { bytes[$0] }) }
    }
}
