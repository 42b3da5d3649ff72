import CountersignAuthority
import CountersignGate
import CountersignWire

extension Command {
    static let releaseImpact = Command(
        words: ["release", "impact"], summary: "show who would be cut off if a version were retired now",
        positionals: [Positional(name: "KEY_ID")],
        options: [.value("days", "N", "so many days back, today among them (default: 30)"), .data, .json],
        notes: """
            Counts the requests of that version that were let in, and those that were sent away since it is being retired. A
            running server adds its figures every two seconds. Days are UTC.
            """
    ) { (run) throws(Fault) in
        let id = try run.keyID(run.required("KEY_ID"), at: "KEY_ID")
        let days = try run.meterDays()
        let deployment = try run.deployment()
        let impact = try ImpactReading(
            of: deployment.release(id), deployment.store, since: run.now / 86_400 - days + 1)
        try run.print(impact.json(now: run.now)) { impact.text(now: run.now) }
        return .success
    }
}
