import CountersignGate
import CountersignSchemes
import CountersignWire

/// A retirement in words.
struct RetirementText {
    private let retirement: ReleaseKey.Retirement
    private let now: Int64

    init(_ retirement: ReleaseKey.Retirement, now: Int64) {
        self.retirement = retirement
        self.now = now
    }

    /// For a table's cell: the stage, and for how many.
    var state: String {
        let percent = retirement.percent(at: now)
        let share = percent == 100 ? "" : " for \(percent)%"
        switch retirement.stage(at: now) {
        case .live: return "until \(Moment.text(retirement.at))"
        case .warn: return "warned\(share), until \(Moment.text(retirement.at))"
        case .readOnly: return "read-only\(share), until \(Moment.text(retirement.at))"
        case .retired: return "retired\(share)"
        }
    }

    func sentence(of id: KeyID) -> String {
        var text = "\(id) is \(retirement.at <= now ? "retired" : "retired from \(Moment.text(retirement.at)) on")"
        if retirement.at > now {
            if let warnAt = retirement.warnAt { text += ", warned \(from(warnAt))" }
            if let readOnlyAt = retirement.readOnlyAt { text += ", read-only \(from(readOnlyAt))" }
        }
        guard let last = retirement.rollout.last else { return text }
        let steps = retirement.rollout.map { step in
            "\(step.percent)% of devices" + (step.since > now ? " from \(Moment.text(step.since)) on" : "")
        }
        text += "; this reaches " + steps.joined(separator: ", ")
        if last.percent < 100 { text += ", and \(100 - last.percent)% never" }
        return text
    }

    private func from(_ time: Int64) -> String { time <= now ? "now" : "from \(Moment.text(time)) on" }
}
