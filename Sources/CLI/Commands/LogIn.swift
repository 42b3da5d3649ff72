import Countersign
import CountersignClient
import CountersignHandshake
import CountersignSeal
import CountersignWire
import Glibc

extension Command {
    static let logIn = Command(
        words: ["login"], summary: "sign in on this machine",
        options: [
            ProfileSession.profileOption, .account, PasswordEntry.option,
            .value(
                "device-class", placeholder: "NAME",
                meaning: "what this machine counts as: \(deviceClasses) (default: desktop)"),
            .value(
                "device-name", placeholder: "TEXT",
                meaning: "how lists of sessions call it (default: the host's name)"),
            .flag(
                "password-login",
                meaning: "send the password, over TLS, for accounts and apps that have it so"),
            .flag(
                "password-fallback",
                meaning:
                    "send it only where the proof without it fails, to a pinned certificate, on the "
                    + "account's first login here"
            ),
            .json,
        ],
        notes: """
            Proves the password without sending it, and stores the session where the profile's --vault says:
            by default in PROFILE/vault, sealed with the key in PROFILE/vault.key, both of mode 0600. This
            excludes the machine's other users, and one file is useless without the other; it does not
            exclude programs that run as you or as root, or an attacker with the disk. From then on
            `request` sends requests in your name.

            A session that is kept here already is replaced, and ends where the app's policy has one for \
            each account.
            """
    ) { (run) throws(OperationalError) in
        let device = DeviceDescription(try deviceKind(run), name: try deviceName(run).description)
        guard !run.arguments.has("password-login") || !run.arguments.has("password-fallback") else {
            throw OperationalError(
                .usage, message: "expected --password-login or --password-fallback, not both")
        }
        let session = try ProfileSession(
            run, device: device,
            passwordLogin: run.arguments.has("password-fallback") ? .onFirstSignInOverPinnedTLS : .never)
        let account = try run.account().description
        let password = try PasswordEntry.text(try PasswordEntry(run: run).read(asking: "password: "))
        let method =
            run.arguments.has("password-login") ? CountersignClient.LogInMethod.passwordIsSent : .opaque
        let state = try session.perform { (client) throws(CountersignError) in
            try await client.logIn(account, password, by: method)
            return try await client.kept()
        }
        guard let login = state.login else {
            throw ProfileSession.operationalError(
                for: .notSignedIn, profile: session.name, origin: session.origin)
        }
        try run.print(.object(login.members(profile: session.name, keys: state.keys))) {
            "signed in as \(login.account)"
        }
        return .success
    }

    private static var deviceClasses: String {
        DeviceDescription.Kind.allCases.map(\.rawValue).joined(separator: ", ")
    }

    private static func deviceKind(_ run: Invocation) throws(OperationalError) -> DeviceDescription.Kind {
        guard let text = run.arguments.value("device-class") else { return .desktop }
        guard let kind = DeviceDescription.Kind(rawValue: text) else {
            throw OperationalError(
                .usage, message: "--device-class `\(text)`: expected one of \(deviceClasses)")
        }
        return kind
    }

    private static func deviceName(_ run: Invocation) throws(OperationalError) -> Device.Name {
        if let text = run.arguments.value("device-name") {
            guard let name = Device.Name(text) else {
                throw OperationalError(
                    .usage,
                    message:
                        "--device-name: expected 1 to \(Device.Name.longest) bytes without control characters"
                )
            }
            return name
        }
        var host = [CChar](repeating: 0, count: 256)
        let isKnown = gethostname(&host, host.count - 1) == 0
        let text =
            isKnown
            ? String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
        guard let name = Device.Name(String(text.prefix(Device.Name.longest))) ?? Device.Name("desktop")
        else {
            throw OperationalError(.usage, message: "--device-name is missing: the host has no name to go by")
        }
        return name
    }
}

extension ActiveLogin {
    /// For scripts: nothing of it is a secret. `keys` are the device's.
    func members(profile: String, keys: DeviceKeys?) -> [(name: String, value: JSONValue)] {
        var members: [(name: String, value: JSONValue)] = [
            ("profile", .string(profile)), ("signed_in", true), ("account", .string(account.description)),
            ("session", .string(id.description)),
        ]
        switch session {
        case .device(let session):
            members += [("kind", "device"), ("epoch", .integer(Int64(session.latest.number)))]
            members.append(("key_storage", .optional(keys?.storage.rawValue)))
        case .bearer: members += [("kind", "bearer"), ("epoch", .null), ("key_storage", .null)]
        }
        members += [
            ("expires", .integer(expires)), ("idle", .integer(idle)), ("slots", .string(slots)),
            ("device", ["class": .string(deviceClass.rawValue), "name": .string(deviceName.description)]),
        ]
        return members
    }
}

extension Command {
    static let logOut = Command(
        words: ["logout"], summary: "end the session of this machine",
        options: [
            ProfileSession.profileOption,
            .flag(
                "local",
                meaning:
                    "forget the session here, though the server may not be told: there it goes on "
                    + "until it is idle"
            ),
            .json,
        ]
    ) { (run) throws(OperationalError) in
        let session = try ProfileSession(run)
        if run.arguments.has("local") {
            try session.perform { (client) throws(CountersignError) in try await client.forgetSession() }
            try run.print(["profile": .string(session.name), "signed_in": false, "server_told": false]) {
                "forgotten here; the server was not told"
            }
            return .success
        }
        let (result, state) = try session.perform { (client) throws(CountersignError) in
            let result = try await client.logOut()
            return (result, client.state)
        }
        let isTold = result == .serverKnows
        try run.print(["profile": .string(session.name), "signed_in": false, "server_told": .bool(isTold)]) {
            guard isTold else {
                return "signed out here; the server could not be reached and is told with the next command"
            }
            guard case .signedOut(.ended(let end)) = state, end.how != .signedOut else { return "signed out" }
            return "signed out; the session had ended: \(ProfileSession.reason(end))"
        }
        return .success
    }
}
