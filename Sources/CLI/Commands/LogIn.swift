import CountersignClient
import CountersignHandshake
import CountersignWire
import Glibc

extension Command {
    static let logIn = Command(
        words: ["login"], summary: "sign in on this machine",
        options: [
            ClientDesk.profileOption, .account, PasswordEntry.option,
            .value("device-class", "NAME", "what this machine counts as: \(deviceClasses) (default: desktop)"),
            .value("device-name", "TEXT", "how lists of sessions call it (default: the host's name)"),
            .flag("password-login", "send the password, over TLS, for accounts and apps that have it so"), .json,
        ],
        notes: """
            Proves the password without sending it, and keeps the session in the profile: PROFILE/vault, sealed with the key in
            PROFILE/vault.key, both of mode 0600. That keeps other users of the machine out, and makes one file without the other
            worthless; it does not keep out who runs as you, or as root, or holds the disk. From then on `request` speaks for you.

            A session that is kept here already is replaced, and ends where the app's policy has one for each account.
            """
    ) { (run) throws(Fault) in
        let desk = try ClientDesk(run)
        let kind = try deviceClass(run)
        let name = try deviceName(run)
        let account = try run.account()
        let text = try PasswordEntry(run: run).read(asking: "password: ")
        let password = try PasswordEntry.password(text)
        let sendsPassword = run.arguments.has("password-login")
        let login = try desk.perform { (installation, surroundings) throws(ClientProblem) in
            if sendsPassword {
                return try await PasswordLogIn(installation, surroundings)(account, text, on: kind, named: name)
            }
            return try await CountersignClient.LogIn(installation, surroundings)(
                account, password, on: kind, named: name)
        }
        try run.print(.object(login.members(desk.name))) { "signed in as \(login.account)" }
        return .success
    }

    private static var deviceClasses: String { Device.Class.allCases.map(\.rawValue).joined(separator: ", ") }

    private static func deviceClass(_ run: Invocation) throws(Fault) -> Device.Class {
        guard let text = run.arguments.value("device-class") else { return .desktop }
        guard let kind = Device.Class(rawValue: text) else {
            throw Fault(.usage, "--device-class `\(text)`: expected one of \(deviceClasses)")
        }
        return kind
    }

    private static func deviceName(_ run: Invocation) throws(Fault) -> Device.Name {
        if let text = run.arguments.value("device-name") {
            guard let name = Device.Name(text) else {
                throw Fault(
                    .usage, "--device-name: expected 1 to \(Device.Name.longest) bytes without control characters")
            }
            return name
        }
        var host = [CChar](repeating: 0, count: 256)
        let isKnown = gethostname(&host, host.count - 1) == 0
        let text = isKnown ? String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
        guard let name = Device.Name(String(text.prefix(Device.Name.longest))) ?? Device.Name("desktop") else {
            throw Fault(.usage, "--device-name is missing: the host has no name to go by")
        }
        return name
    }
}

extension SignedIn {
    /// For scripts: nothing of it is a secret.
    func members(_ profile: String) -> [(name: String, value: JSONValue)] {
        var members: [(name: String, value: JSONValue)] = [
            ("profile", .string(profile)), ("signed_in", true), ("account", .string(account.description)),
            ("session", .string(id.description)),
        ]
        switch session {
        case .device(let session):
            members += [("kind", "device"), ("epoch", .integer(Int64(session.latest.number)))]
        case .bearer: members += [("kind", "bearer"), ("epoch", .null)]
        }
        members += [
            ("expires", .integer(expires)), ("idle", .integer(idle)), ("slots", .string(slots)),
            ("device", ["class": .string(deviceClass.rawValue), "name": .string(deviceName.description)]),
        ]
        return members
    }
}
