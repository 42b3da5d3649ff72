import CountersignWire

/// What a device learns of the time. A clock that is wrong is corrected by the authority's signed word only, and only where that
/// cannot be old: who holds an answer back moves the clock by as long as he holds it.
/// Source: docs/protocol.md, "Time".
enum ServerClock {
    /// Milliseconds within which an answer must come.
    static let mostDelay: Int64 = 5_000

    /// Seconds to add to the device's clock, by a `stale` that is genuine; nil where it teaches nothing.
    static func offset(_ notice: Notice, took: Int64, _ time: any ClientTime) -> Int64? {
        guard notice.code == Refusal.Code.stale.rawValue, took < mostDelay, let told = notice.time else { return nil }
        return told - time.now
    }
}
