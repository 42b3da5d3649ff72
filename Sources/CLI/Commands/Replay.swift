import CountersignAuthority
import CountersignGate
import CountersignReplay
import CountersignServer
import CountersignWire
import Glibc

extension Command {
    static let replayStatus = Command(
        words: ["replay", "status"],
        summary: "show how full the replay table is, and what it refuses for its age",
        options: [.data, .json],
        notes: """
            The floor is the time at or before which signatures are refused as `unavailable`, because the
            table cannot tell whether it has seen them. After a restart of the machine it lies a window ahead
            of the clock, and passes.
            """
    ) { (run) throws(OperationalError) in
        let status = try run.replayStatus()
        try run.print(status.json(at: run.clock.now)) { status.text(at: run.clock.now) }
        return .success
    }

    static let replayConfirmClock = Command(
        words: ["replay", "confirm-clock"],
        summary: "confirm that the clock is right, after it was set or far ahead",
        options: [
            .flag("yes", meaning: "you have compared the system's clock with another one, and it is right"),
            .data, .json,
        ],
        notes: """
            Use it for a server that does not trust its clock because the clock was set (`/ready` has the
            cause `clock-set`), or that answers every request `unavailable` because it ran while the clock
            was far ahead. The floor falls to about one window after now. Requests that the server admitted
            by the wrong clock cannot be replayed: when real time reaches that interval, the server refuses
            signatures made in it (`countersign replay status` shows the interval). A running server follows
            at once. Compare the clock with another one first: if it is wrong, sessions may end, and used
            signatures may be accepted again.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        if try ReplayService.sharedGuard(of: deployment) != nil {
            return try run.confirmClockAlone(of: deployment)
        }
        let status = try run.replayStatus()
        guard run.arguments.has("yes") else {
            throw run.unconfirmed(
                " The floor is \(TimeText.text(status.floor)) and would become "
                    + TimeText.text(status.planned.floor))
        }
        let confirmation = try deployment.confirmReplayClock(
            at: run.clock.now, refusing: status.planned.refused, floor: status.planned.floor)
        try run.carryOut(confirmation, of: deployment)
        try run.noteConfirmedClock(confirmation, of: deployment)
        let after = try run.replayStatus()
        try run.print(after.json(at: run.clock.now)) { after.text(at: run.clock.now) }
        return .success
    }
}

extension Invocation {
    fileprivate func unconfirmed(_ consequence: String = "") -> OperationalError {
        OperationalError(
            .usage,
            message: "the clock says \(TimeText.text(clock.now)); if that is right, add --yes.\(consequence)")
    }

    /// Confirms the clock of a deployment with a shared replay guard, which watches its server's clock
    /// itself. The gateways trust their clocks again; nothing else changes.
    fileprivate func confirmClockAlone(of deployment: Deployment) throws(OperationalError) -> ExitStatus {
        guard arguments.has("yes") else { throw unconfirmed() }
        let confirmation = try deployment.confirmReplayClock(
            at: clock.now, refusing: deployment.replayConfirmation()?.refused ?? TimeIntervals(), floor: 0)
        RestartRequest(deployment.folder).wake()
        try noteConfirmedClock(confirmation, of: deployment)
        let json: JSONValue = [
            "confirmation": .integer(confirmation.number), "at": .integer(confirmation.at),
        ]
        try print(json) {
            "confirmed the clock at \(TimeText.text(confirmation.at)); gateways follow within seconds"
        }
        return .success
    }

    fileprivate func replayStatus() throws(OperationalError) -> ReplayStatus {
        let configuration = try configuration()
        if let shared = configuration.replay.shared {
            throw Invocation.notFor(shared, at: configuration.replay.text)
        }
        let folder = try DataFolder(configuration.data, absence: .fail)
        guard let status = try ReplayStatus(path: folder.replay, now: clock.now) else {
            throw OperationalError(
                .failed,
                message: "\(folder.replay): there is no replay table yet; `countersign serve` makes one")
        }
        return status
    }

    fileprivate static func notFor(_ shared: SharedReplayKind, at place: String) -> OperationalError {
        OperationalError(
            .failed,
            message: "the replay guard is \(place), and this command is about the replay file; the metrics "
                + "`countersign_replay_\(shared.rawValue)_*` show the epoch and the floor")
    }

    /// For later commands of this machine, and for a server that starts later. A running server notes it by
    /// itself.
    fileprivate func noteConfirmedClock(
        _ confirmation: ClockConfirmation, of deployment: Deployment
    ) throws(OperationalError) {
        guard host == nil else { return }
        let isNoted = try deployment.noteConfirmedClock(clock, confirmation: confirmation.number)
        if !isNoted, let contradiction = clock.contradiction {
            console.note("note: this machine's clock stays in doubt: \(contradiction)")
        }
    }

    /// By a running server, or else here.
    fileprivate func carryOut(_ confirmation: ClockConfirmation, of deployment: Deployment)
        throws(OperationalError)
    {
        RestartRequest(deployment.folder).wake()
        for _ in 0..<100 {
            if try replayStatus().confirmation >= confirmation.number { return }
            do {
                let service = try ReplayService(deployment, keys: ReleaseKeyDirectory(deployment))
                return try service.takeConfirmation(at: clock.now)
            } catch {
                // A server has it open.
            }
            usleep(100_000)
        }
        throw OperationalError(
            .failed,
            message:
                "the confirmation is recorded, but the running server has not taken it up; its log says why")
    }
}

extension ReplayStatus {
    fileprivate func json(at now: Int64) -> JSONValue {
        [
            "now": .integer(now), "floor": floor > 0 ? .integer(floor) : .null,
            "floor_ahead": .integer(max(floor - now, 0)), "is_far_ahead": .bool(isFarAhead(of: now)),
            "window": .integer(window), "entries": .integer(Int64(entries)),
            "capacity": .integer(Int64(capacity)),
            "refused": .array(refused.all.map { .array([.integer($0.first), .integer($0.last)]) }),
            "clock_periods": .array(periods.all.map { .array([.integer($0.first), .integer($0.last)]) }),
            "confirmations": .integer(confirmation),
        ]
    }

    fileprivate func text(at now: Int64) -> String {
        var lines = ["clock     \(TimeText.text(now))"]
        if floor > now {
            lines.append(
                "floor     \(TimeText.text(floor)), \(floor - now) s ahead: what was signed up to "
                    + "then is refused"
            )
        } else {
            lines.append("floor     \(floor > 0 ? TimeText.text(floor) : "none")")
        }
        lines.append("entries   about \(entries) of \(capacity)")
        for interval in refused.all {
            lines.append("refused   \(TimeText.text(interval.first)) to \(TimeText.text(interval.last))")
        }
        if isFarAhead(of: now) {
            lines.append("If the clock was wrong before and is right now: countersign replay confirm-clock")
        }
        return lines.joined(separator: "\n")
    }
}
