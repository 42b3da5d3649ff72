import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Command {
    static let releaseList = Command(
        words: ["release", "list"], summary: "list an app's versions",
        positionals: [Positional(name: "APP")], options: [.data, .json]
    ) { (run) throws(Fault) in
        let deployment = try run.deployment()
        let app = try deployment.app(run.appName())
        let releases = try deployment.store.releases(of: app.name)
        let keys = try releases.map { (release) throws(Fault) in try ReleaseKeys(release, deployment) }
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
                "retirement": release.retirement.map { .object($0.told) } ?? .null,
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
            return Table.text(["KEY ID", "PLATFORM", "VERSION", "SCHEME", "STATE", "KEYS", "OWN POLICY"], rows)
        }
        return .success
    }

    private static func ownSettings(_ release: Release) -> [(key: String, value: String)] {
        release.ownPolicy.sorted { $0.key < $1.key }
    }
}

/// What a release's keys are for. Only message-signatures have more than one algorithm: of other schemes there is
/// nothing to say.
private struct ReleaseKeys {
    var current: KeyAlgorithm?
    var next: KeyAlgorithm?

    init(_ release: Release, _ deployment: Deployment) throws(Fault) {
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
