import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let releaseList = Command(
        words: ["release", "list"], summary: "list an app's versions",
        positionals: [Positional(name: "APP")], options: [.data, .json]
    ) { (run) throws(Fault) in
        let deployment = try run.deployment()
        let app = try deployment.app(run.appName())
        let releases = try deployment.store.releases(of: app.name)
        let json = releases.map { release -> JSONValue in
            [
                "key_id": .string(release.id.description), "platform": .string(release.platform.description),
                "version": .string(release.version.description), "scheme": .string(release.scheme.rawValue),
                "next_key": .bool(release.sealedNextSecret != nil),
                "policy": .object(ownSettings(release).map { (name: $0.key, value: .string($0.value)) }),
                "created": .integer(release.created),
                "retired_at": release.retirement.map { .integer($0.at) } ?? .null,
                "update_url": .optional(release.retirement?.updateURL),
            ]
        }
        let now = run.now
        try run.print(["app": .string(app.name.description), "releases": .array(json)]) {
            if releases.isEmpty { return "no releases; `countersign release add \(app.name)` makes one" }
            let rows = releases.map { release in
                [
                    release.id.description, release.platform.description, release.version.description,
                    release.scheme.rawValue,
                    release.retirement.map { $0.at <= now ? "retired" : "until \($0.at)" } ?? "live",
                    release.sealedNextSecret == nil ? "one" : "current, next",
                    ownSettings(release).map { "\($0.key)=\($0.value)" }.joined(separator: " "),
                ]
            }
            return Table.text(["KEY ID", "PLATFORM", "VERSION", "SCHEME", "STATE", "KEYS", "OWN POLICY"], rows)
        }
        return .success
    }

    private static func ownSettings(_ release: Release) -> [(key: String, value: String)] {
        release.settings.sorted { $0.key < $1.key }
    }
}
