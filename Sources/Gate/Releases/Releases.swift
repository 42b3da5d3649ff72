import CountersignWire

/// Is this version of the app still served?
package struct Releases: Sendable {
    /// What a request would do, as far as a version that may only read is concerned.
    package enum Effect: Sendable { case reads, changes }

    package init() {}

    /// What is to be told to the caller, who is let in; nil for nothing. `session` is the one that the
    /// request names, and `network` where the client calls from, as far as one can be told from another.
    package func check(
        _ release: ReleaseKey, in session: Session?, _ effect: Effect, from network: () -> [UInt8], at now: Int64
    ) throws(Refusal) -> UpdateNotice? {
        guard let retirement = release.retirement else { return nil }
        switch retirement.stage(at: now, place: { RolloutPlace.of(release, in: session, from: network) }) {
        case .live: return nil
        case .warn: return UpdateNotice(.warn, retirement)
        case .readOnly where effect == .reads: return UpdateNotice(.readOnly, retirement)
        case .readOnly:
            let since = CivilTime.internetText(retirement.readOnlyAt ?? now)
            throw Refusal(
                .updateRequired, "release \(release.id) may only read since \(since)",
                link: retirement.updateURL)
        case .retired:
            let at = CivilTime.internetText(retirement.at)
            throw Refusal(
                .updateRequired, "release \(release.id) was retired at \(at)",
                link: retirement.updateURL)
        }
    }
}
