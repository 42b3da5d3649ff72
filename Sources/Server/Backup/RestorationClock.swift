import CountersignAuthority
import CountersignGate
import CountersignWire

/// Judges the machine's clock before a restoration goes by it. A clock that is wrong would end the refusal of
/// keyed requests and of used signatures in the past, or a year ahead. All times are in whole Unix seconds.
package struct RestorationClock: Sendable {
    /// Whether an operator has compared the machine's clock with another one.
    package enum Confirmation: Sendable { case none, given }

    /// No gateway of the deployment was away for longer, unless an operator says so.
    private static let mostGap: Int64 = 31 * 86_400
    /// Clocks are compared by whole seconds.
    private static let tolerance = ClockTrust.tolerance / 1_000 + 1

    /// As the machine says.
    let now: Int64
    let confirmation: Confirmation

    package init(now: Int64, confirmation: Confirmation) {
        (self.now, self.confirmation) = (now, confirmation)
    }

    /// The lesser time of the machine and of the database, whose clock is `database` milliseconds. Throws if
    /// they differ.
    func time(beside database: Int64) throws(OperationalError) -> Int64 {
        guard confirmation == .none else { return now }
        try require(now - database / 1_000, ahead: "the database's clock")
        return min(now, database / 1_000)
    }

    /// The machine's time. Throws if the clock files of `folders` contradict it, or the times of `records`.
    func time(beside records: [Int64], in folders: [DataFolder?]) throws(OperationalError) -> Int64 {
        guard confirmation == .none else { return now }
        var known = records
        for case let folder? in folders {
            let file = ClockRecord.file(in: folder)
            guard let record = (try? file.read()).flatMap(ClockRecord.init) else { continue }
            known.append(record.trust.lastTrusted / 1_000)
            let (_, uptime) = TrustedClock.machine()
            if let boot = try? MachineBoot.currentID(), boot == record.boot,
                let expected = record.trust.expected(at: uptime)
            {
                try require(now - expected / 1_000, ahead: "the time expected by the machine's uptime")
            }
        }
        guard let newest = known.max(), newest > 0 else { return now }
        guard now >= newest - RestorationClock.tolerance else {
            throw refused("is \(newest - now) s behind the newest record of the deployment")
        }
        guard now - newest <= RestorationClock.mostGap else {
            throw refused("is \((now - newest) / 86_400) days ahead of the newest record of the deployment")
        }
        return now
    }

    private func require(_ ahead: Int64, ahead reference: String) throws(OperationalError) {
        guard abs(ahead) > RestorationClock.tolerance else { return }
        throw refused("is \(abs(ahead)) s \(ahead < 0 ? "behind" : "ahead of") \(reference)")
    }

    private func refused(_ text: String) -> OperationalError {
        OperationalError(
            .failed,
            message: "the clock says \(CivilTime.rfc3339Text(now)), and \(text); nothing was changed. Set "
                + "the clock right. If you have compared it with another one, and it is right, add "
                + "--confirm-clock")
    }
}
