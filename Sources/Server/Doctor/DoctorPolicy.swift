import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

/// Policies that are meant for a while, or for few, and were left as they are.
extension Doctor {
    private static let unusedDays: Int64 = 30
    /// After that long, no copy of a retired version is expected to update by itself.
    private static let retiredDays: Int64 = 180

    mutating func checkPolicies(of deployment: Deployment) {
        let count = findings.count
        do throws(OperationalError) {
            let meter = try deployment.store.meter(since: now / 86_400 - Doctor.unusedDays + 1)
            let began = try deployment.store.value(of: .meterBegan).flatMap {
                Int64(String(decoding: $0, as: UTF8.self))
            }
            for app in try deployment.store.apps() {
                let policy = try app.policy()
                checkObserving(policy, of: app)
                checkRoutes(policy, of: app)
                if policy.registration == .open {
                    add(
                        .policy, verdict: .warning, message: "app \(app.name): anybody may sign up",
                        expected: "registration=admin, unless that is meant",
                        command: "countersign app policy \(app.name) --set registration=admin")
                }
                // A meter or an app that is younger tells nothing.
                if max(began ?? now, app.created) <= now - Doctor.unusedDays * 86_400 {
                    checkSchemes(policy, of: app, meter: meter)
                }
            }
            for release in try deployment.store.releases(of: nil) { checkRetired(release) }
        } catch {
            add(
                .policy, verdict: .error, message: error.message, expected: "policies that can be read",
                command: "countersign audit verify")
        }
        if findings.count == count { add(.policy, message: "no policy is wider than usual") }
    }

    private mutating func checkObserving(_ policy: Policy, of app: App) {
        if case .observe(let until) = policy.enforcement, until > now {
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): requests without a valid proof reach the backend until "
                    + CivilTime.rfc3339Text(until),
                expected: "enforcement=enforce",
                command: "countersign app policy \(app.name) --set enforcement=enforce")
        }
        for rule in policy.routes.rules {
            guard case .observe(let until) = rule.enforcement, until > now else { continue }
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): route \(rule.prefixText) only observes until "
                    + CivilTime.rfc3339Text(until),
                expected: "enforcement=enforce",
                command: "countersign route set \(app.name) \(rule.prefixText) --require "
                    + "\(rule.level.rawValue) --enforcement enforce")
        }
    }

    private mutating func checkRoutes(_ policy: Policy, of app: App) {
        for rule in policy.routes.rules where rule.isForAll && rule.level <= .signed {
            add(
                .policy, verdict: .warning,
                message: rule.level == .open
                    ? "app \(app.name): every route is open to anyone"
                    : "app \(app.name): every route without a rule of its own is open to any copy of "
                        + "the app, without a session",
                expected: "session or device for all but a few routes",
                command: "countersign route set \(app.name) / --require session")
        }
    }

    private mutating func checkSchemes(_ policy: Policy, of app: App, meter: [MeterEntry]) {
        let used = Set(
            meter.filter { $0.subject.app == app.name.description && $0.subject.outcome.countsAsAdmitted }
                .map(\.subject.scheme))
        let legacy = policy.schemes.filter { $0 != .messageSignatures }
        for scheme in legacy.sorted(by: { $0.rawValue < $1.rawValue }) where !used.contains(scheme.rawValue) {
            let rest = policy.schemes.filter { $0 != scheme }.map(\.rawValue).sorted()
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): scheme \(scheme.rawValue) is allowed, and no request has used it "
                    + "in \(Doctor.unusedDays) days",
                expected: "only schemes that are used",
                command: "countersign app policy \(app.name) --set schemes=\(rest.joined(separator: ","))")
        }
    }

    private mutating func checkRetired(_ release: Release) {
        guard let retirement = release.retirement, retirement.at < now - Doctor.retiredDays * 86_400,
            release.sealedNextSecret != nil
        else { return }
        add(
            .policy, verdict: .warning,
            message: "release \(release.id) of app \(release.app) was retired at "
                + "\(CivilTime.rfc3339Text(retirement.at)), and has a next key still",
            expected: "no key that nobody is to get",
            command: "countersign release rotate \(release.id) --cancel")
    }
}
