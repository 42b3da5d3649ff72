import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Administration of apps and releases. Each change is durable, and visible to a running server, when its
/// call returns.
extension Deployment {
    /// `settings` are `KEY=VALUE` texts as `--set` takes them; `level` is what the backend's routes
    /// require.
    package func addApp(
        _ name: AppName, settings: [String], requiring level: RouteRule.Level = .session, at now: Int64
    ) throws(OperationalError) -> App {
        var app = App(name: name, created: now)
        app.settings[App.routesSetting] = .text(RouteRules(all: level).text)
        let changes = try changes(settings, of: name)
        for change in changes { app.settings[change.name] = change.setting }
        guard
            try store.insert(
                app,
                recording: auditDraft(
                    for: .appAdd, on: .app(name), details: Deployment.auditDetails(of: changes))) == .yes
        else {
            throw OperationalError(.failed, message: "app \(name): there is one of that name")
        }
        generation.advance()
        return app
    }

    package func setPolicy(_ assignments: [String], of name: AppName) throws(OperationalError) {
        let changes = try changes(assignments, of: name)
        try changeApp(name) { (_) in changes }
    }

    package func app(_ name: AppName) throws(OperationalError) -> App {
        guard let app = try store.app(name) else { throw Deployment.noApp(name) }
        return app
    }

    package func release(_ id: KeyID) throws(OperationalError) -> Release {
        guard let release = try store.release(id) else {
            throw OperationalError(.missing, message: "release \(id): there is none")
        }
        return release
    }

    package func addRelease(_ draft: ReleaseDraft, at now: Int64) throws(OperationalError) -> IssuedRelease {
        guard try store.app(draft.app) != nil else { throw Deployment.noApp(draft.app) }
        guard draft.publicKey == nil || draft.scheme == .messageSignatures else {
            throw OperationalError(
                .usage,
                message: "a public key is for message-signatures; \(draft.scheme.rawValue) has shared secrets"
            )
        }
        guard !draft.id.isReserved else {
            throw OperationalError(
                .usage,
                message:
                    "key id \(draft.id): an id that begins with `s_`, `b_` or `l_` is a session's token; "
                    + "expected another"
            )
        }
        guard !draft.id.description.hasPrefix(HostedApp.otherVersionsPrefix) else {
            throw OperationalError(
                .usage,
                message: "key id \(draft.id): what begins with `\(HostedApp.otherVersionsPrefix)` stands "
                    + "for versions that are not registered; expected another")
        }
        let seeds = try answerSeeds(at: now)
        let keys = try seeds.publicHalves()
        var release = Release(
            id: draft.id, app: draft.app, platform: draft.platform, version: draft.version,
            scheme: draft.scheme,
            sealedSecret: [],
            // Not before the next answer key, which its clients are built with.
            created: max(now, seeds.nextMade))
        release.sealedSecret = seal(draft, for: release)
        let told: [(name: String, value: JSONValue)] = [
            ("platform", .string(draft.platform.description)),
            ("version", .string(draft.version.description)),
            ("scheme", .string(draft.scheme.rawValue)),
            ("key", draft.scheme == .token ? "none" : draft.publicKey == nil ? "secret" : "public"),
        ]
        let audit = auditDraft(for: .releaseAdd, on: .release(draft.id, of: draft.app), details: told)
        guard try store.insert(release, recording: audit) == .yes else {
            throw try conflict(of: draft)
        }
        generation.advance()
        // A rotation just before the insertion did not see this release: its clients need the keys of now.
        let latest = (try? answerSeeds(at: now).publicHalves()) ?? keys
        return IssuedRelease(
            release: release, secret: draft.secret, answerKey: latest.current, nextAnswerKey: latest.next)
    }

    /// The reasons why the store rejected the release.
    private func conflict(of draft: ReleaseDraft) throws(OperationalError) -> OperationalError {
        var reasons: [String] = []
        if let other = try store.release(draft.id) {
            reasons.append(
                "the key id \(draft.id) is taken: by \(other.app) \(other.version) on \(other.platform) "
                    + "(\(other.scheme.rawValue))")
        }
        let same = try store.releases(of: draft.app).first {
            $0.platform == draft.platform && $0.version == draft.version && $0.scheme == draft.scheme
        }
        if let same, same.id != draft.id {
            reasons.append(
                "\(draft.app) \(draft.version) on \(draft.platform) has a key under "
                    + "\(draft.scheme.rawValue): "
                    + "\(same.id); `countersign release rotate \(same.id)` gives it another")
        }
        if reasons.isEmpty { reasons.append("it is there already") }
        return OperationalError(.failed, message: "release: \(reasons.joined(separator: "; and "))")
    }

    /// `assignments` are `KEY=VALUE` texts; an empty value restores the app's setting.
    package func setPolicy(_ assignments: [String], ofRelease id: KeyID) throws(OperationalError) {
        var changes: [(name: String, text: String?)] = []
        for assignment in assignments {
            let (key, value) = try PolicyKey.changeOfRelease(assignment)
            changes.append((key.name, value))
        }
        let told = changes.map { (name: $0.name, value: JSONValue.optional($0.text)) }
        let audit = auditDraft(for: .releasePolicy, on: .release(id, of: try release(id).app), details: told)
        guard try store.change(id, applying: changes, recording: audit) == .yes else {
            throw OperationalError(.missing, message: "release \(id): there is none")
        }
        generation.advance()
    }

    /// Checks a list of breached passwords. Throws if this party must not name a file.
    private func checkList(at path: String) throws(OperationalError) {
        guard policyFiles.naming == .allowed else {
            throw OperationalError(
                .usage,
                message: """
                    \(PolicyKey.breachedPasswords): it names a file of the server, and cannot be set over \
                    the API or in the console; expected `countersign app policy` on the server's machine
                    """)
        }
        try BreachedPasswords(path, files: policyFiles).check()
    }

    private func changes(
        _ assignments: [String], of app: AppName
    ) throws(OperationalError) -> [(name: String, setting: StoredSetting?)] {
        var changes: [(name: String, setting: StoredSetting?)] = []
        for assignment in assignments {
            let (key, value) = try PolicyKey.change(assignment, at: clock.estimate)
            if key.name == "enforcement", Enforcement(value ?? "")?.endsByDate == true {
                try requireClock(for: "policy enforcement")
            }
            if key.name == PolicyKey.breachedPasswords, let value { try checkList(at: value) }
            let setting: StoredSetting? =
                switch (value, key.visibility) {
                case (nil, _): nil
                case (let value?, .shown): .text(value)
                case (let value?, .secret):
                    .sealed(seal(Secret(copying: [UInt8](value.utf8).span), as: .policy(key.name, of: app)))
                }
            changes.append((key.name, setting))
        }
        return changes
    }

    /// Settings for the audit log; a secret appears as `(sealed)`.
    static func auditDetails(
        of changes: [(name: String, setting: StoredSetting?)]
    ) -> [(name: String, value: JSONValue)] {
        changes.map { change in
            switch change.setting {
            case nil: (change.name, .null)
            case .text(let text): (change.name, .string(text))
            case .sealed: (change.name, "(sealed)")
            }
        }
    }

    static func noApp(_ name: AppName) -> OperationalError {
        OperationalError(
            .missing, message: "app \(name): there is none; `countersign app add \(name)` makes it")
    }
}

/// A release before it has a row, with a new key or with one that the team already uses.
package struct ReleaseDraft: Sendable {
    package var app: AppName
    package var platform: Platform
    package var version: Version
    package var scheme: SchemeName
    package var id: KeyID
    package var secret: Secret
    /// The key that verifies signatures of clients with a key pair; `secret` is then random and unused.
    package var publicKey: PublicKey?

    package init(
        app: AppName, platform: Platform, version: Version, scheme: SchemeName, id: KeyID,
        publicKey: PublicKey
    ) {
        self.init(
            app: app, platform: platform, version: version, scheme: scheme, id: id, secret: Secret(random: 32)
        )
        self.publicKey = publicKey
    }

    package init(
        app: AppName, platform: Platform, version: Version, scheme: SchemeName, id: KeyID, secret: Secret
    ) {
        self.app = app
        self.platform = platform
        self.version = version
        self.scheme = scheme
        self.id = id
        self.secret = secret
    }
}

/// The result of adding a release; its secret is shown only here.
package struct IssuedRelease: Sendable {
    package var release: Release
    package var secret: Secret
    /// The Ed25519 public key that verifies the authority's answers.
    package var answerKey: [UInt8]
    /// The one that follows it: an app that has both is not cut off by a rotation.
    package var nextAnswerKey: [UInt8]
}

extension KeyID {
    /// Whether the id begins like a token's; a release of such a name would be taken for a session. Source:
    /// docs/protocol.md, "Sessions" and "Bearer sessions".
    package var isReserved: Bool {
        let text = bytes
        guard text.count >= 2, text[1] == UInt8(ascii: "_") else { return false }
        return [UInt8(ascii: "s"), UInt8(ascii: "b"), UInt8(ascii: "l")].contains(text[0])
    }
}
