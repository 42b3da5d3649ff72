import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Command {
    static let releaseList = Command(
        words: ["release", "list"], summary: "list an app's versions",
        positionals: [Positional(name: "APP")], options: [.data, .json]
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let app = try deployment.app(run.appName())
        let releases = try deployment.store.releases(of: app.name)
        let keys = try releases.map { (release) throws(OperationalError) in
            try ReleaseKeys(release, deployment: deployment)
        }
        let json = zip(releases, keys).map { release, keys -> JSONValue in
            [
                "key_id": .string(release.id.description), "platform": .string(release.platform.description),
                "version": .string(release.version.description), "scheme": .string(release.scheme.rawValue),
                "algorithm": .optional(keys.current?.rawValue),
                "next_key": .bool(release.sealedNextSecret != nil),
                "next_algorithm": .optional(keys.next?.rawValue),
                "policy": .object(ownSettings(release).map { (name: $0.key, value: .string($0.value)) }),
                "created": .integer(release.created),
                "retired_at": release.retirement.map { .integer($0.at) } ?? .null,
                "update_url": .optional(release.retirement?.updateURL),
                "retirement": release.retirement.map { .object($0.auditDetails) } ?? .null,
            ]
        }
        let now = run.now
        try run.print(["app": .string(app.name.description), "releases": .array(json)]) {
            if releases.isEmpty { return "no releases; `countersign release add \(app.name)` makes one" }
            let rows = zip(releases, keys).map { release, keys in
                [
                    release.id.description, release.platform.description, release.version.description,
                    release.scheme.rawValue,
                    release.retirement.map { RetirementText($0, now: now).state } ?? "live",
                    keys.text(release),
                    ownSettings(release).map { "\($0.key)=\($0.value)" }.joined(separator: " "),
                ]
            }
            return Table.text(
                head: ["KEY ID", "PLATFORM", "VERSION", "SCHEME", "STATE", "KEYS", "OWN POLICY"], rows: rows)
        }
        return .success
    }

    private static func ownSettings(_ release: Release) -> [(key: String, value: String)] {
        release.ownPolicy.sorted { $0.key < $1.key }
    }
}

/// What a release's keys are for. Only message-signatures have more than one algorithm: of other schemes
/// there is nothing to say.
private struct ReleaseKeys {
    var current: KeyAlgorithm?
    var next: KeyAlgorithm?

    init(_ release: Release, deployment: Deployment) throws(OperationalError) {
        guard release.scheme == .messageSignatures else { return }
        current = try deployment.key(of: release).algorithm
        next = try deployment.nextKey(of: release)?.algorithm
    }

    func text(_ release: Release) -> String {
        let names = [current?.rawValue ?? "secret"]
        return (release.sealedNextSecret == nil ? names : names + ["next: \(next?.rawValue ?? "secret")"])
            .joined(separator: ", ")
    }
}

extension Command {
    static let releasePolicy = Command(
        words: ["release", "policy"], summary: "show or change what one release's callers are judged by",
        positionals: [Positional(name: "KEY_ID")],
        options: [
            .list(
                "set", placeholder: "KEY=VALUE",
                meaning: "change a setting; an empty VALUE gives it back to the app"), .data, .json,
        ],
        notes: """
            A setting of the release stands in place of the app's, whole: window=10s leaves nothing of the \
            app's windows.
            Keys:

            """
                + PolicyKey.described(PolicyKey.gateKeys + PolicyKey.traffic)
    ) { (run) throws(OperationalError) in
        let id = try run.keyID(run.required("KEY_ID"), at: "KEY_ID")
        let deployment = try run.deployment()
        let assignments = run.arguments.values("set")
        if !assignments.isEmpty {
            try PolicyChange.check(assignments) { (text) throws(OperationalError) in
                _ = try PolicyKey.changeOfRelease(text)
            }
            try deployment.setPolicy(assignments, ofRelease: id)
        }
        let release = try deployment.release(id)
        let app = try deployment.app(release.app)
        let rows = (PolicyKey.gateKeys + PolicyKey.traffic).map {
            ReleaseSetting($0, release: release, app: app)
        }
        let json = rows.map { row -> JSONValue in
            [
                "key": .string(row.key.name), "value": .string(row.value),
                "from": .string(row.origin.rawValue),
                "meaning": .string(row.key.meaning),
            ]
        }
        try run.print([
            "key_id": .string(id.description), "app": .string(app.name.description), "policy": .array(json),
        ]) {
            rows.map { "\($0.key.name)=\($0.value)  (\($0.origin.rawValue))\n    \($0.key.meaning)" }
                .joined(separator: "\n")
        }
        if try !app.policy(for: release).schemes.contains(release.scheme) {
            run.console.note(
                "note: \(id) signs with \(release.scheme.rawValue), which this policy does not allow: "
                    + "its requests are refused")
        }
        return .success
    }
}

/// A setting as a release has it, and where it comes from.
private struct ReleaseSetting {
    enum Origin: String { case release, app, `default` }

    var key: PolicyKey
    var value: String
    var origin: Origin

    init(_ key: PolicyKey, release: Release, app: App) {
        self.key = key
        if let own = release.settings[key.name] {
            (value, origin) = (own, .release)
        } else if case .text(let text) = app.settings[key.name] {
            (value, origin) = (text, .app)
        } else {
            (value, origin) = (key.fallback, .default)
        }
    }
}
