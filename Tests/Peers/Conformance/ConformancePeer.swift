import Countersign
import CountersignSeal
import CountersignWire

/// The SDK as a port under `countersign conformance`: a driver over its public interface.
struct ConformancePeer {
    private let client: CountersignClient

    static func run() async throws {
        var peer: ConformancePeer?
        while let line = readLine() {
            let action = ConformanceAction(try JSONReader.read(Array(line.utf8)))
            if action["do"] == "set-up" { peer = try ConformancePeer(action) }
            let answer = await peer?.answer(to: action) ?? ["unsupported": true]
            Line.out(answer.text)
        }
    }

    init(_ action: ConformanceAction) throws {
        let release = try ReleaseKey(
            id: action["key_id"], secret: action["secret"], authorityKey: action["authority_key"],
            nextAuthorityKey: action["next_authority_key"], app: action["app"])
        let policy = try Trust.Policy.pins(action.texts("pins"), backups: action.texts("backup_pins"))
        let trust = Trust([Trust.Rule(try Trust.HostPattern("localhost"), policy)], others: .refused)
        let (system, offset) = (DeviceClock.system, action.seconds("clock_offset"))
        var options = CountersignOptions()
        options.device = DeviceDescription(.desktop, name: action["device_name"])
        options.clock = DeviceClock(wall: { system.wall() + offset }, monotonic: system.monotonic)
        if let key = Base64.decode(action["manifest_key"], as: .url), !key.isEmpty {
            let file = ManifestFile("\(action["state"])/pins.json")
            options.pinUpdates = .signed(
                .init(
                    app: action["app"], keys: [key], version: Int(action.seconds("pins_version")), store: file
                ))
        }
        client = try CountersignClient(
            release: release, baseURL: action["url"], vault: .folder(action["state"]), trust: trust,
            options: options)
    }

    func answer(to action: ConformanceAction) async -> JSONValue {
        do {
            guard let members = try await carryOut(action) else { return ["unsupported": true] }
            return ["ok": .object(members.map { (name: $0.0, value: $0.1) })]
        } catch {
            return ["error": ["code": .string(code(of: error)), "detail": .string("\(error)")]]
        }
    }

    /// Nil for what the SDK does not show: what the `known-` actions ask for, it computes inside.
    private func carryOut(_ action: ConformanceAction) async throws(CountersignError) -> [(
        String, JSONValue
    )]? {
        switch action["do"] {
        case "set-up":
            // As an app does at its launch.
            await client.resume()
            return [
                ("port", "the SDK"),
                (
                    "features",
                    ["device-signature", "change-password", "pin-manifest", "next-authority-key"]
                ),
            ]
        case "sign-up": try await client.signUp(action["account"], action["password"])
        case "log-in":
            try await client.logIn(action["account"], action["password"])
            return status
        case "call": return try await call(action)
        case "refresh":
            // It refreshes when a token has run out, and not on request. Those of the app for this live for
            // four seconds.
            try? await Task.sleep(for: .milliseconds(4_300))  // lint: the token lives by the judge's clock
            try await client.confirmSession()
        case "log-out": try await client.logOut()
        case "change-password":
            try await client.changePassword(from: action["password"], to: action["new_password"])
        case "update-pins":
            // Nil stands for a manifest that is no newer.
            guard let version = try await client.fetchPins() else {
                throw .misuse("pins: none that is newer")
            }
            return [("version", .integer(Int64(version)))]
        case "status": return status
        default: return nil
        }
        return []
    }

    private func call(_ action: ConformanceAction) async throws(CountersignError) -> [(String, JSONValue)] {
        var request = APIRequest(
            APIMethod(action["method"]), action["target"],
            fields: action.fields.map { HeaderField($0.0, value: $0.1) })
        if !action.body.isEmpty { request.body = .bytes(action.body) }
        if action.isOnce { request.idempotencyKey = Base64.encode(SystemRandom().bytes(16).span, as: .url) }
        let (data, response) = try await client.data(for: request)
        let body = Array(data)
        return [
            ("status", .integer(Int64(response.status))),
            ("body", .string(Base64.encode(body.span, as: .url))),
        ]
    }

    private var status: [(String, JSONValue)] {
        switch client.state {
        case .active(let account):
            [
                ("state", "signed-in"), ("account", .string(account.name)),
                ("session", .string(account.session)),
            ]
        case .updateRequired(let url): [("state", "update-required"), ("link", .optional(url))]
        case .signedOut(.ended(let end)): [("state", "signed-out"), ("reason", .string(reason(of: end)))]
        case .signedOut(.nobody): [("state", "signed-out")]
        case .locked, .unavailable: [("state", "unavailable")]
        }
    }

    private func reason(of end: SessionEnd) -> String {
        switch end.how {
        case .replaced: "replaced"
        case .revoked: "revoked"
        case .reused: "reused"
        case .signedOut: "signed-out"
        default: "\(end.how)"
        }
    }

    /// As the protocol has them; else a word of the SDK's.
    private func code(of error: CountersignError) -> String {
        switch error {
        case .wrongCredentials: "wrong-credentials"
        case .signedOut(let end): end.how == .never ? "session-required" : "session-ended"
        case .updateRequired: "update-required"
        case .refused(let refusal): refusal.code
        case .transport: "network"
        case .notGenuine: "false-answer"
        case .notSignedIn: "not-signed-in"
        default: "other"
        }
    }
}
