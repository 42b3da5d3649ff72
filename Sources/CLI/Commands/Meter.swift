import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let meter = Command(
        words: ["meter"], summary: "show who still sends what: requests by release and scheme",
        positionals: [Positional(name: "APP", presence: .optional)],
        options: [.value("days", "N", "so many days back, today among them (default: 30)"), .data, .json],
        notes: """
            Counts what the gate said of each request; a running server adds its figures every two seconds. NEXT is the
            share of the accepted that signed with the release's next key. Refused requests count where they claim to come
            from, which they have not proved. Days are UTC, and are kept for 400 days.
            """
    ) { (run) throws(Fault) in
        let days = try run.meterDays()
        let deployment = try run.deployment()
        let app = try run.arguments.positional("APP").map { (name) throws(Fault) in
            try deployment.app(AppName(argument: name)).name
        }
        let reading = try MeterReading(deployment.store, app: app, since: run.now / 86_400 - days + 1)
        try run.print(reading.json) { reading.text }
        return .success
    }
}

extension Invocation {
    /// What `--days` says.
    func meterDays() throws(Fault) -> Int64 {
        guard let text = arguments.value("days") else { return 30 }
        guard let days = Int64(text), (1...400).contains(days) else {
            throw Fault(.usage, "--days `\(text)`: expected a number from 1 to 400")
        }
        return days
    }
}
