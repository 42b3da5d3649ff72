import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let releaseImpact = Command(
        words: ["release", "impact"],
        summary: "show the callers that would be cut off if a version were retired now",
        positionals: [Positional(name: "KEY_ID")],
        options: [
            .value("days", placeholder: "N", meaning: "so many days back, today among them (default: 30)"),
            .data, .json,
        ],
        notes: """
            Counts the requests of that version that were let in, and those that were sent away since it is \
            being retired. A
            running server adds its figures every two seconds. Days are UTC.
            """
    ) { (run) throws(OperationalError) in
        let id = try run.keyID(run.required("KEY_ID"), at: "KEY_ID")
        let days = try run.meterDays()
        let deployment = try run.deployment()
        let impact = try ReleaseImpactReport(
            of: deployment.release(id), in: deployment, since: run.now / 86_400 - days + 1, at: run.now)
        try run.print(impact.json(now: run.now)) { impact.text(now: run.now) }
        return .success
    }
}

/// What a retirement would cut off: the meter's counts of a release beside the rest of its app.
struct ReleaseImpactReport {
    struct Day: Equatable {
        /// Since 1970-01-01 UTC.
        var number: Int64
        var accepted: Int64
        /// Refused because it is retired, or may only read.
        var refusedForUpdate: Int64
    }

    let release: Release
    /// Days with requests, oldest first.
    private(set) var days: [Day] = []
    /// Of all releases of its app, in the same days.
    private(set) var appAccepted: Int64 = 0
    /// Whole Unix seconds; nil where it was never let in.
    private(set) var lastAccepted: Int64?
    /// Live sessions that were last signed in or renewed under it.
    private(set) var sessions = 0
    /// Those of its app on its platform, under whichever release.
    private(set) var platformSessions = 0
    /// Of these, those of which it is not known: not renewed since it is kept, or by no release's request.
    private(set) var unknownSessions = 0

    var accepted: Int64 { days.reduce(0) { $0 + $1.accepted } }
    var refusedForUpdate: Int64 { days.reduce(0) { $0 + $1.refusedForUpdate } }
    /// In whole per cent of the app's, rounded up: 0 means none.
    var share: Int64 { appAccepted == 0 ? 0 : (accepted * 100 + appAccepted - 1) / appAccepted }

    init(
        of release: Release, in deployment: Deployment, since day: Int64, at now: Int64
    ) throws(OperationalError) {
        self.release = release
        let store = deployment.store
        var byDay: [Int64: Day] = [:]
        for entry in try store.meter(since: 0) where entry.subject.app == release.app.description {
            let isOurs = entry.subject.release == release.id.description
            switch entry.subject.outcome {
            case let outcome where outcome.countsAsAdmitted && !entry.subject.release.isEmpty:
                if entry.day >= day { appAccepted += entry.count }
                guard isOurs else { continue }
                lastAccepted = max(lastAccepted ?? 0, entry.lastSeen)
                if entry.day >= day { byDay[entry.day, default: Day(entry.day)].accepted += entry.count }
            case .refused(.updateRequired) where isOurs && entry.day >= day:
                byDay[entry.day, default: Day(entry.day)].refusedForUpdate += entry.count
            default: continue
            }
        }
        days = byDay.values.sorted { $0.number < $1.number }
        // Sessions that were not renewed in time are refused already.
        let idle = try deployment.app(release.app).policy().sessionIdle
        for group in try store.liveSessions(of: release.app, usedSince: now - idle)
        where group.platform == release.platform {
            platformSessions += group.count
            if group.release == release.id { sessions += group.count }
            if group.release == nil { unknownSessions += group.count }
        }
    }
}

extension ReleaseImpactReport.Day {
    fileprivate init(_ number: Int64) { self.init(number: number, accepted: 0, refusedForUpdate: 0) }
}

extension ReleaseImpactReport {
    func text(now: Int64) -> String {
        let state = release.retirement.map { RetirementText($0, now: now).state } ?? "live"
        var lines = [
            "\(release.id): \(release.app) \(release.version) on \(release.platform), "
                + "\(release.scheme.rawValue), \(state)"
        ]
        if days.isEmpty {
            lines.append("no request of it in these days")
        } else {
            let rows = days.map { [date($0.number), String($0.accepted), String($0.refusedForUpdate)] }
            lines.append(Table.text(head: ["DAY (UTC)", "ACCEPTED", "SENT AWAY"], rows: rows))
        }
        lines.append("\(accepted) requests would be cut off, \(share)% of the app's \(appAccepted)")
        lines.append(lastAccepted.map { "last let in at \(TimeText.text($0))" } ?? "never let in")
        let unknown =
            unknownSessions == 0 ? "" : ", \(unknownSessions) of them in a version that is not known"
        lines.append(
            "\(sessions) live sessions were last signed in or renewed by it, of the app's "
                + "\(platformSessions) on "
                + "\(release.platform)\(unknown)")
        return lines.joined(separator: "\n")
    }

    func json(now: Int64) -> JSONValue {
        [
            "key_id": .string(release.id.description), "app": .string(release.app.description),
            "platform": .string(release.platform.description),
            "version": .string(release.version.description),
            "scheme": .string(release.scheme.rawValue),
            "stage": .string(release.retirement.map { $0.stage(at: now).rawValue } ?? "live"),
            "accepted": .integer(accepted), "sent_away": .integer(refusedForUpdate),
            "app_accepted": .integer(appAccepted),
            "share_percent": .integer(share), "last_accepted": lastAccepted.map { .integer($0) } ?? .null,
            "days": .array(
                days.map { day in
                    [
                        "day": .string(date(day.number)), "accepted": .integer(day.accepted),
                        "sent_away": .integer(day.refusedForUpdate),
                    ]
                }),
            "sessions": .integer(Int64(sessions)), "platform_sessions": .integer(Int64(platformSessions)),
            "unknown_sessions": .integer(Int64(unknownSessions)),
        ]
    }

    private func date(_ day: Int64) -> String { TimeText.dayText(day * 86_400) }
}
