import Countersign
import CountersignWire
import Foundation

/// A legacy client. The test sends orders as lines of JSON on standard input; each is answered by a line of
/// JSON with the result and the client's state.
struct LegacyPeer {
    private let client: LegacyClient

    static func run(_ options: PeerOptions) async throws {
        let peer = try LegacyPeer(options)
        while let line = readLine() {
            let order = LegacyOrder(try JSONReader.read(Array(line.utf8)).root)
            Line.out(await peer.carryOut(order).text)
        }
    }

    init(_ options: PeerOptions) throws {
        let scheme: LegacyScheme =
            switch options["scheme"] {
            case "form-md5":
                try .formMD5(
                    appID: options["id"], privateKey: options["secret"], platform: "ios", version: "2.0")
            case "auth-v1": try .authV1(key: options["id"], secret: options["secret"])
            case "auth-v2": try .authV2(clientID: options["id"], secret: options["secret"])
            case "auth-v4": try .authV4(clientID: options["id"], secret: options["secret"])
            default: .unsigned
            }
        let (salt, key) = (options["salt"], options["key"])
        let rung: LegacyLogin.Rung =
            switch options["rung"] {
            case "plain-get": .plainGet
            case "plain-post": .plainPost
            case "base64": .base64
            case "md5-salt": .md5Salt(salt)
            case "hmac-md5": .hmacMD5(key: key)
            case "hmac-md5-time": .hmacMD5Time(key: key)
            default: .md5
            }
        var settings = LegacyOptions()
        if options["remembers"] == "what-signs-in" {
            settings.remembers = .sessionAndWhatSignsInLikeThePassword
        }
        if options["remembers"] == "nothing" { settings.remembers = .nothing }
        if !options["logout"].isEmpty { settings.logoutPath = options["logout"] }
        client = try LegacyClient(
            scheme: scheme, baseURL: options["url"],
            login: LegacyLogin(rung, signing: options["scheme"] == "auth-v4" ? .none : .likeRequests),
            vault: .folder(options["vault"]), trust: try LegacyPeer.trust(options), options: settings)
    }

    private static func trust(_ options: PeerOptions) throws -> Trust {
        guard !options["pin"].isEmpty else { return Trust([], others: .system) }
        let policy = try Trust.Policy.pins([options["pin"]], backups: [options["backup"]])
        return Trust([Trust.Rule(try Trust.HostPattern("127.0.0.1"), policy)], others: .refused)
    }

    func carryOut(_ order: LegacyOrder) async -> JSONValue {
        var result: [(String, JSONValue)] = []
        do {
            result = try await done(order)
        } catch {
            result = [("error", .string(name(of: error)))]
            if case .updateRequired(let url) = error { result.append(("url", .string(url ?? ""))) }
        }
        result.append(("state", .string(state)))
        return .object(result)
    }

    private func done(_ order: LegacyOrder) async throws(CountersignError) -> [(String, JSONValue)] {
        switch order["do"] {
        case "logIn": try await client.logIn(order["name"], order["password"])
        case "logOut":
            if try await client.logOut() == .serverKnows { return [("server", "knows")] }
        case "resume": await client.resume()
        case "adopt":
            try await client.adopt(
                LegacySessionRemains(
                    account: order["name"], userID: Int64(order["user"]) ?? 0, token: order["token"],
                    loginToken: order["loginToken"].isEmpty ? nil : order["loginToken"]))
        case "signed":
            let signed = try await client.signed(order.request)
            return [
                ("url", .string(signed.url)),
                (
                    "fields",
                    .array(
                        signed.fields.map {
                            [.string($0.name), .string(String(decoding: $0.value, as: UTF8.self))]
                        })
                ),
            ]
        case "download":
            let response = try await client.download(for: order.request, to: order["to"])
            return [("status", .integer(Int64(response.status)))]
        case "send": return try await sent(order)
        default: break
        }
        return []
    }

    /// All at once; the answers' bodies, in any order.
    private func sent(_ order: LegacyOrder) async throws(CountersignError) -> [(String, JSONValue)] {
        let client = client
        let request = order.request
        let results = await withTaskGroup(of: Result<(Data, APIResponse), CountersignError>.self) { group in
            for _ in 0..<order.count {
                group.addTask {
                    do throws(CountersignError) {
                        return .success(try await client.data(for: request))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var bodies: [JSONValue] = []
        for result in results { bodies.append(.string(String(decoding: try result.get().0, as: UTF8.self))) }
        return [("bodies", .array(bodies))]
    }

    private func name(of error: CountersignError) -> String {
        switch error {
        case .notSignedIn: "notSignedIn"
        case .signedOut: "signedOut"
        case .wrongCredentials: "wrongCredentials"
        case .updateRequired: "updateRequired"
        case .certificateNotPinned: "certificateNotPinned"
        case .misuse: "misuse"
        case .transport: "transport"
        default: "\(error)"
        }
    }

    private var state: String {
        switch client.state {
        case .signedOut(.nobody): "signed out: nobody"
        case .signedOut(.ended(let end)): "signed out: \(end.how)"
        case .active(let account): "active: \(account.name) \(account.session)"
        case .locked: "locked"
        case .unavailable: "unavailable"
        case .updateRequired(let url): "update required: \(url ?? "")"
        }
    }
}
