import CountersignGate
import CountersignWire

/// An operator's confirmations of the clock, stored with their audit record, so that they survive a loss of
/// the replay file.
extension Deployment {
    /// The last confirmation; nil if there is none.
    package func replayConfirmation() throws(OperationalError) -> ClockConfirmation? {
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
        var refused = TimeIntervals()
        for element in elements {
            guard let ends = element.elements, ends.count == 2,
                let first = second(ends[0], in: document), let last = second(ends[1], in: document)
            else { throw Deployment.alteredConfirmation }
            refused.add(first: first, last: last)
        }
        return ClockConfirmation(number: number, at: at, refused: refused)
    }

    /// Stores and records another confirmation; a running server applies it. `floor` is only recorded.
    package func confirmReplayClock(
        at now: Int64, refusing refused: TimeIntervals, floor: Int64
    ) throws(OperationalError) -> ClockConfirmation {
        let previous = try replayConfirmation()
        var all = refused
        for interval in previous?.refused.all ?? [] where interval.last > now {
            all.add(first: interval.first, last: interval.last)
        }
        let confirmation = ClockConfirmation(number: (previous?.number ?? 0) + 1, at: now, refused: all)
        let intervals = JSONValue.array(all.all.map { .array([.integer($0.first), .integer($0.last)]) })
        let value = JSONValue.object([
            ("number", .integer(confirmation.number)), ("at", .integer(now)), ("refused", intervals),
        ])
        try store.set(
            .replayConfirmation, to: Array(value.text.utf8),
            recording: auditDraft(
                for: .replayConfirmClock, on: .deployment,
                details: [("at", .integer(now)), ("floor", .integer(floor)), ("refused", intervals)]))
        generation.advance()
        return confirmation
    }

    private func second(_ value: JSON, in document: JSONDocument) -> Int64? {
        document.integer(value, in: Int.min...Int.max).map { Int64($0) }
    }

    private static var alteredConfirmation: OperationalError {
        OperationalError(.failed, message: "replay confirmation: its value in the store is damaged")
    }
}
