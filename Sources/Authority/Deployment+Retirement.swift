import CountersignGate
import CountersignSchemes
import CountersignWire

/// How administrators take a version out of service, and back in.
extension Deployment {
    /// In the place of a retirement that the release has. Its moments must come in their order, and its shares must grow:
    /// who was sent away is not to be let in again by the clock alone.
    package func retire(_ id: KeyID, _ retirement: ReleaseKey.Retirement) throws(Fault) {
        try Deployment.check(retirement)
        let audit = recording(.releaseRetire, .release(id, of: try release(id).app), retirement.told)
        guard try store.retire(id, retirement, recording: audit) == .yes else {
            throw Fault(.failed, "release \(id): there is none")
        }
        generation.advance()
    }

    /// The release is live again, at once and for everybody.
    package func undoRetirement(of id: KeyID) throws(Fault) {
        let release = try release(id)
        let audit = recording(.releaseUndo, .release(id, of: release.app), release.retirement?.told ?? [])
        guard try store.undoRetirement(of: id, recording: audit) == .yes else {
            throw Fault(.failed, "release \(id): it is not retired, nor about to be")
        }
        generation.advance()
    }

    private static func check(_ retirement: ReleaseKey.Retirement) throws(Fault) {
        let moments: [(String, Int64?)] = [
            ("--warn-at", retirement.warnAt), ("--read-only-at", retirement.readOnlyAt), ("--at", retirement.at),
        ]
        let given = moments.compactMap { name, time in time.map { (name: name, time: $0) } }
        for (earlier, later) in zip(given, given.dropFirst()) where earlier.time > later.time {
            throw Fault(
                .usage, "\(earlier.name) is after \(later.name); expected warn, read-only, retired in this order")
        }
        let steps = retirement.rollout
        guard steps.allSatisfy({ (0...100).contains($0.percent) }) else {
            throw Fault(.usage, "--percent: expected whole numbers from 0 to 100")
        }
        for (earlier, later) in zip(steps, steps.dropFirst())
        where earlier.since >= later.since || earlier.percent > later.percent {
            throw Fault(.usage, "--percent: expected later times and no smaller shares from step to step")
        }
    }
}

extension ReleaseKey.Retirement {
    /// What was decided, for the record and for people.
    package var told: [(name: String, value: JSONValue)] {
        var told: [(name: String, value: JSONValue)] = [("at", .integer(at)), ("update_url", .string(updateURL))]
        if let warnAt { told.append(("warn_at", .integer(warnAt))) }
        if let readOnlyAt { told.append(("read_only_at", .integer(readOnlyAt))) }
        if !rollout.isEmpty {
            let steps = rollout.map { step -> JSONValue in
                ["since": .integer(step.since), "percent": .integer(Int64(step.percent))]
            }
            told.append(("rollout", .array(steps)))
        }
        return told
    }
}
