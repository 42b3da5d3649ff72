import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

/// Policies that are meant for a while, or for few, and were left as they are.
extension Doctor {
    private static let unusedDays: Int64 = 30
    /// The number of days for which requests that a stricter policy would refuse are counted.
    private static let observedDays: Int64 = 7
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
                let recent = meter.filter {
                    $0.subject.app == app.name.description && $0.day > now / 86_400 - Doctor.observedDays
                }
                checkObserving(policy, of: app, meter: recent)
                checkRoutes(policy, of: app, meter: recent)
                checkTraffic(policy, of: app)
                checkCondition(try AppCondition(app, meter: meter, at: now), of: app)
                if policy.registration == .open {
                    add(
                        .policy, verdict: .warning, message: "app \(app.name): anybody may sign up",
                        expected: "registration=admin, unless users sign up themselves: it refuses sign-ups")
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
                command: ownCommand("audit", "verify"))
        }
        if findings.count == count { add(.policy, message: "no policy is wider than usual") }
    }

    /// The requests that enforcement would refuse, as the meter counted them: ` (12 unsigned, 3 stale)`;
    /// empty if there were none. A finding prescribes no command that would refuse them.
    private func refused(_ meter: [MeterEntry], if counts: (MeterOutcome) -> String?) -> String {
        var causes: [String: Int64] = [:]
        for entry in meter {
            if let cause = counts(entry.subject.outcome) { causes[cause, default: 0] += entry.count }
        }
        guard !causes.isEmpty else { return "" }
        let texts = causes.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
        return "; it would refuse requests like those of the last \(Doctor.observedDays) days: "
            + texts.joined(separator: ", ")
    }

    private func observed(_ meter: [MeterEntry]) -> String {
        refused(meter) { if case .observed(let code) = $0 { code.name } else { nil } }
    }

    private mutating func checkObserving(_ policy: Policy, of app: App, meter: [MeterEntry]) {
        let refused = observed(meter)
        let showMeter = ownCommand("meter", app.name.description)
        if case .observe(let until) = policy.enforcement, until > now {
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): requests without a valid proof reach the backend until "
                    + CivilTime.rfc3339Text(until),
                expected: "enforcement=enforce" + refused,
                command: refused.isEmpty
                    ? ownCommand("app", "policy", app.name.description, "--set", "enforcement=enforce")
                    : showMeter)
        }
        for rule in policy.routes.rules {
            guard case .observe(let until) = rule.enforcement, until > now else { continue }
            // Without them it would be another rule, for all methods, of a level that was meant for few.
            let methods = rule.methods.map { String(decoding: $0, as: UTF8.self) }
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): route \(rule.prefixText)"
                    + (methods.isEmpty ? "" : " (\(methods.joined(separator: ",")))")
                    + " only observes until "
                    + CivilTime.rfc3339Text(until),
                expected: "enforcement=enforce" + refused,
                command: refused.isEmpty
                    ? ownCommand(
                        "route", "set", app.name.description, rule.prefixText, "--require",
                        rule.level.rawValue, "--enforcement", "enforce")
                        + (methods.isEmpty ? "" : " --methods \(methods.joined(separator: ","))")
                        + rule.limits.texts.map { " --\($0.name) \($0.value)" }.joined()
                    : showMeter)
        }
    }

    /// Checks what the policy alone does not show.
    private mutating func checkCondition(_ condition: AppCondition, of app: App) {
        let showMeter = ownCommand("meter", app.name.description)
        if condition.isFailing {
            add(
                .policy, verdict: .warning,
                message:
                    "app \(app.name): \(condition.failed) of \(condition.forwarded) requests failed at its "
                    + "backend today and yesterday",
                expected: "whole responses of a status below 500; the log has the requests",
                command: showMeter)
        }
        if condition.unregistered > 0 {
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): \(condition.unregistered) requests of versions that are not "
                    + "registered came today and yesterday; `release retire` does not reach such versions",
                expected: "`countersign release add` for each version in the field", command: showMeter)
        }
    }

    private mutating func checkTraffic(_ policy: Policy, of app: App) {
        let traffic = policy.traffic
        if traffic.maintenance != nil {
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): it is in maintenance, and no request reaches its backend",
                expected: "maintenance=off, once the work is done",
                command: ownCommand("maintenance", "off", "--app", app.name.description))
        }
        for range in traffic.deniedAddresses where range.isWhole {
            add(
                .policy, verdict: .warning,
                message:
                    "app \(app.name): deny-addresses has \(range), which is every address of its version",
                expected: "ranges of single networks; `allow-addresses` is for the few that are served",
                command: ownCommand(
                    "app", "policy", app.name.description, "--set",
                    "deny-addresses="
                        + traffic.deniedAddresses.filter { !$0.isWhole }.map(\.description)
                        .joined(separator: ",")))
        }
        if !traffic.crossOrigin.credentialedOrigins.isEmpty, policy.legacyHost == nil {
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): cors-credentials has no effect, as the app has no legacy-host",
                expected: "legacy-host=HOST, or no cors-credentials",
                command: ownCommand("app", "policy", app.name.description, "--set", "cors-credentials="))
        }
        if traffic.crossOrigin.origins == ["*"] {
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): pages of every web site may call it from a browser",
                expected: "cors-origins with the sites that need it: the others are refused from then on")
        }
    }

    /// A rule `signed` for all routes is not a finding: it is how apps without Countersign sessions are
    /// added.
    private mutating func checkRoutes(_ policy: Policy, of app: App, meter: [MeterEntry]) {
        let refused = refused(meter) { if case .open = $0 { "unsigned" } else { nil } }
        for rule in policy.routes.rules where rule.isForAll && rule.level == .open {
            add(
                .policy, verdict: .warning, message: "app \(app.name): every route is open to anyone",
                expected: "signed, session or device for all but a few routes" + refused,
                command: refused.isEmpty
                    ? ownCommand("route", "set", app.name.description, "/", "--require", "signed")
                        + rule.limits.texts.map { " --\($0.name) \($0.value)" }.joined()
                    : ownCommand("meter", app.name.description))
        }
    }

    private mutating func checkSchemes(_ policy: Policy, of app: App, meter: [MeterEntry]) {
        let used = Set(
            meter.filter { $0.subject.app == app.name.description && $0.subject.outcome.countsAsAdmitted }
                .map(\.subject.scheme))
        let unused = policy.schemes.filter { $0 != .messageSignatures && !used.contains($0.rawValue) }
        // The same in each finding: a command for one scheme must not allow another one again.
        let rest = policy.schemes.filter { !unused.contains($0) }.map(\.rawValue).sorted()
        for scheme in unused.sorted(by: { $0.rawValue < $1.rawValue }) {
            add(
                .policy, verdict: .warning,
                message: "app \(app.name): scheme \(scheme.rawValue) is allowed, and no request has used it "
                    + "in \(Doctor.unusedDays) days",
                expected: rest.isEmpty ? "an app that is used, or none" : "only schemes that are used",
                command: rest.isEmpty
                    ? nil
                    : ownCommand(
                        "app", "policy", app.name.description, "--set",
                        "schemes=\(rest.joined(separator: ","))"))
        }
    }

    private mutating func checkRetired(_ release: Release) {
        // A retirement of a share of the devices leaves others that may sign with the next key.
        guard let retirement = release.retirement,
            retirement.isComplete(at: now - Doctor.retiredDays * 86_400), release.sealedNextSecret != nil
        else { return }
        add(
            .policy, verdict: .warning,
            message: "release \(release.id) of app \(release.app) was retired at "
                + "\(CivilTime.rfc3339Text(retirement.at)), and has a next key still",
            expected: "no key that nobody is to get",
            command: ownCommand("release", "rotate", release.id.description, "--cancel"))
    }
}
