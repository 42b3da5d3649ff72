import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

/// The meter of some days, put together for people: a line a release, and what nobody uses.
struct MeterReading {
    /// One release, and what was counted of it.
    struct Line {
        var release: Release
        var accepted: Int64 = 0
        /// Of those, how many under the next key.
        var underNextKey: Int64 = 0
        /// Of those, how many by an upload ticket.
        var byTicket: Int64 = 0
        /// By the refusal's code.
        var refused: [String: Int64] = [:]
        var passed = Passed()
        /// Whole Unix seconds; nil where nothing came.
        var lastSeen: Int64?

        var refusals: Int64 { refused.values.reduce(0, +) }
    }

    /// What went on to the backend without having proved anything.
    struct Passed {
        /// To routes that are open to anybody.
        var open: Int64 = 0
        /// By the code of the refusal that was only observed.
        var observed: [String: Int64] = [:]

        var isEmpty: Bool { open == 0 && observed.isEmpty }

        mutating func add(_ entry: MeterEntry) {
            switch entry.subject.outcome {
            case .open: open += entry.count
            case .observed(let code): observed[code.rawValue, default: 0] += entry.count
            case .accepted, .acceptedUnderNextKey, .acceptedByTicket, .refused: break
            }
        }
    }

    /// The same of requests that named no release and came to an app's host.
    struct Unsigned {
        var app: AppName
        var passed = Passed()
        /// Whole Unix seconds.
        var lastSeen: Int64 = 0
    }

    /// A scheme that an app's policy allows and under which no request was accepted.
    struct Unused {
        var app: AppName
        var scheme: SchemeName
        /// Whole Unix seconds; nil where no server has run yet.
        var since: Int64?
    }

    /// The first of the days, since 1970-01-01 UTC.
    let since: Int64
    private(set) var lines: [Line] = []
    private(set) var unused: [Unused] = []
    /// Only apps of which such requests came.
    private(set) var unsigned: [Unsigned] = []
    /// Requests that named no release, by their refusal's code. Left out for a single app: nobody knows whose they were.
    private(set) var unknown: [String: Int64] = [:]

    init(_ store: any Store, app: AppName?, since: Int64) throws(Fault) {
        self.since = since
        let stored = try store.snapshot()
        let all = try store.meter(since: 0)
        let began = try store.value(of: .meterBegan).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
        for release in stored.releases where app == nil || release.app == app {
            lines.append(MeterReading.line(of: release, all.filter { $0.day >= since }))
        }
        for owner in stored.apps where app == nil || owner.name == app {
            var row = Unsigned(app: owner.name)
            for entry in all
            where entry.subject.release.isEmpty && entry.subject.app == owner.name.description && entry.day >= since {
                row.passed.add(entry)
                row.lastSeen = max(row.lastSeen, entry.lastSeen)
            }
            if !row.passed.isEmpty { unsigned.append(row) }
            if let others = MeterReading.otherVersions(of: owner.name) {
                let line = MeterReading.line(of: others, all.filter { $0.day >= since })
                if line.lastSeen != nil { lines.append(line) }
            }
        }
        for entry in all where app == nil && entry.subject.release.isEmpty && entry.day >= since {
            if case .refused(let code) = entry.subject.outcome { unknown[code.rawValue, default: 0] += entry.count }
        }
        for owner in stored.apps where app == nil || owner.name == app {
            let allowed = try MeterReading.allowed(by: owner, stored.releases)
            for scheme in SchemeName.allCases where allowed.contains(scheme) {
                let seen = all.filter { $0.isAccepted(of: owner.name, scheme) }
                guard !seen.contains(where: { $0.day >= since }) else { continue }
                unused.append(Unused(app: owner.name, scheme: scheme, since: seen.map(\.lastSeen).max() ?? began))
            }
        }
    }

    private static func line(of release: Release, _ entries: [MeterEntry]) -> Line {
        var line = Line(release: release)
        for entry in entries where entry.subject.release == release.id.description {
            line.lastSeen = max(line.lastSeen ?? 0, entry.lastSeen)
            switch entry.subject.outcome {
            case .accepted: line.accepted += entry.count
            case .acceptedByTicket:
                line.accepted += entry.count
                line.byTicket += entry.count
            case .acceptedUnderNextKey:
                line.accepted += entry.count
                line.underNextKey += entry.count
            case .refused(let code): line.refused[code.rawValue, default: 0] += entry.count
            case .open, .observed: line.passed.add(entry)
            }
        }
        return line
    }

    /// What stands for the versions of scheme token that are not registered.
    private static func otherVersions(of app: AppName) -> Release? {
        guard let platform = Platform(HostedApp.unknown), let version = Version(HostedApp.unknown) else {
            return nil
        }
        return Release(
            id: HostedApp.otherVersionsID(of: app.description), app: app, platform: platform,
            version: version, scheme: .token, sealedSecret: [], created: 0)
    }

    /// By the app's policy, or by that of one of its releases.
    private static func allowed(by app: App, _ releases: [Release]) throws(Fault) -> Set<SchemeName> {
        var allowed = try app.policy().schemes
        for release in releases where release.app == app.name && !release.settings.isEmpty {
            allowed.formUnion(try app.policy(for: release).schemes)
        }
        return allowed
    }
}

extension MeterEntry {
    fileprivate func isAccepted(of app: AppName, _ scheme: SchemeName) -> Bool {
        guard subject.app == app.description, subject.scheme == scheme.rawValue else { return false }
        return [.accepted, .acceptedUnderNextKey, .acceptedByTicket].contains(subject.outcome)
    }
}
