import CountersignGate
import CountersignWire

/// An operator's confirmations of the clock, as the store keeps them: with their record in the audit log, and
/// for the case that the replay file is lost.
extension Deployment {
    /// The last confirmation; nil where there was none.
    package func replayConfirmation() throws(Fault) -> ReplayConfirmation? {
        guard let bytes = try store.value(of: .replayConfirmation) else { return nil }
        guard let document = try? JSONReader.read(bytes), let members = document.root.members else {
            throw Deployment.alteredConfirmation
        }
        func integer(_ name: String) -> Int64? {
            members.first { $0.name == name }.flatMap { second($0.value, in: document) }
        }
        guard let number = integer("number"), let at = integer("at"),
            let elements = members.first(where: { $0.name == "refused" })?.value.elements
        else { throw Deployment.alteredConfirmation }
        var refused = Intervals()
        for element in elements {
            guard let ends = element.elements, ends.count == 2,
                let first = second(ends[0], in: document), let last = second(ends[1], in: document)
            else { throw Deployment.alteredConfirmation }
            refused.add(first: first, last: last)
        }
        return ReplayConfirmation(number: number, at: at, refused: refused)
    }

    /// Keeps another one, recorded; a running server carries it out. `floor` is only recorded.
    package func confirmReplayClock(
        at now: Int64, refusing refused: Intervals, floor: Int64
    ) throws(Fault) -> ReplayConfirmation {
        let previous = try replayConfirmation()
        var all = refused
        for interval in previous?.refused.all ?? [] where interval.last > now {
            all.add(first: interval.first, last: interval.last)
        }
        let confirmation = ReplayConfirmation(number: (previous?.number ?? 0) + 1, at: now, refused: all)
        let intervals = JSONValue.array(all.all.map { .array([.integer($0.first), .integer($0.last)]) })
        let value = JSONValue.object([
            ("number", .integer(confirmation.number)), ("at", .integer(now)), ("refused", intervals),
        ])
        try store.set(
            .replayConfirmation, to: Array(value.text.utf8),
            recording: recording(
                .replayConfirmClock, .deployment,
                [("at", .integer(now)), ("floor", .integer(floor)), ("refused", intervals)]))
        generation.advance()
        return confirmation
    }

    private func second(_ value: JSON, in document: JSONDocument) -> Int64? {
        document.integer(value, in: Int.min...Int.max).map { Int64($0) }
    }

    private static var alteredConfirmation: Fault {
        Fault(.failed, "replay confirmation: its value in the store is damaged")
    }
}
