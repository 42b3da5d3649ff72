import CountersignWire

/// Is this version of the app still served?
package struct Releases: Sendable {
    package init() {}

    package func check(_ caller: Caller, at now: Int64) throws(Refusal) {
        guard let retirement = caller.release.retirement, retirement.at <= now else { return }
        throw Refusal(
            .updateRequired, "release \(caller.release.id) was retired at \(retirement.at)", link: retirement.updateURL)
    }
}
