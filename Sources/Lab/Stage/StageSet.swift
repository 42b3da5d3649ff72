import Countersign
import CountersignSeal
import CountersignTestKit
import CountersignWire

import FoundationEssentials

/// Sets the stage for a row, and strikes it: the one place that knows which parts go together.
struct StageSet {
    let stage: Stage
    private let upstream: BankUpstream?

    init(_ row: RowProfile, in folder: String, _ settings: LabSettings) async throws {
        let isOldTLS = row.server == .reference && row.transport != .plain
        let authorities = try Authorities(serverKey: isOldTLS ? .rsa(2_048) : .p256)
        let network = try Network(
            security: row.transport == .plain
                ? .plain : .tls(authority: authorities.attacker, host: Setting.host),
            tools: settings.tools)
        let bank = try Bank(folder: folder)
        let authority = "\(Setting.host):\(network.publicPort)"
        var key = AppKey.random()
        let server: any StagedServer
        let enrol: Cast.Enrolling
        var release: ReleaseKey?
        switch row.server {
        case .reference:
            upstream = nil
            let reference = try ReferenceServer(
                row: row, appKey: key, bank: bank, folder: folder,
                tls: isOldTLS ? try ReferenceTLS(authorities.server, folder: folder) : nil)
            server = reference
            enrol = StageSet.enrolling(reference, bank)
        case .gateway, .nginxAsking:
            let backend = try StageSet.backend(row, key, bank, folder)
            let bankPort: UInt16
            if let backend {
                (upstream, bankPort) = (nil, backend.port)
            } else {
                let behind = try BankUpstream(bank, row.server == .nginxAsking ? .asked : .gateway)
                (upstream, bankPort) = (behind, behind.port)
            }
            var plan = GatewayServer.Plan(
                binary: settings.binary, folder: "\(folder)/gateway", authority: authority, bank: bankPort,
                authorities: authorities, transport: row.transport, sabotage: settings.sabotage)
            if row.server == .nginxAsking { AskedServer.prepare(&plan) }
            let gateway = try GatewayServer(plan)
            release = try await StageSet.setUp(gateway, GatewaySetup(row: row, key: key), &key)
            try await gateway.start()
            if let backend {
                server = OpenRouteServer(gateway, before: backend)
                enrol = StageSet.enrolling(backend, bank)
            } else {
                server =
                    row.server == .nginxAsking
                    ? try await AskedServer(
                        gateway, before: bankPort, authorities, row.transport, folder: "\(folder)/nginx",
                        program: settings.nginx) : gateway
                enrol = StageSet.enrolling(gateway, GatewaySetup(row: row, key: key), bank)
            }
        }
        network.lead(to: server.port)
        let thief = "mallory"
        try bank.open(name: thief, userID: 666)
        let words = WordList.standard
        let destination = Destination(
            authority: authority, transport: row.transport == .plain ? .plain : .tls, platform: Setting.platform,
            version: Setting.version)
        let cast = Cast(
            row: row, key: key, release: release, bank: bank, words: words, authorities: authorities, folder: folder,
            origin: (row.transport == .plain ? "http://" : "https://") + authority, enrol: enrol)
        stage = Stage(
            Stage.Parts(
                row: row, network: network, bank: bank, server: server,
                craft: CraftCatalogue.craft(for: row, at: destination),
                appKey: key, thief: thief, words: words, folder: folder, casting: cast))
    }

    /// Ends everything that was started.
    func strike() async {
        stage.network.stop()
        await stage.server.stop()
        upstream?.stop()
    }

    /// The app, its policy and its release; the key that the app has of it where it is our own kind.
    private static func setUp(
        _ gateway: GatewayServer, _ setup: GatewaySetup, _ key: inout AppKey
    ) async throws -> ReleaseKey? {
        try await gateway.operate(["app", "add", Setting.app, "--require", setup.level], typing: "")
        try await gateway.operate(["app", "policy", Setting.app] + setup.policy.flatMap { ["--set", $0] })
        let version = ["--platform", Setting.platform, "--version", Setting.version, "--json"]
        let printed = try await gateway.operate(
            ["release", "add", Setting.app] + version + setup.release,
            typing: setup.release.isEmpty ? "" : setup.key.secret.withExposedBytes { $0.text })
        guard setup.row.scheme == .countersign || setup.row.scheme == .messageSignaturesWithPassword else { return nil }
        let made = try JSONDecoder().decode(MadeRelease.self, from: Data(printed))
        // What signs is what the text stands for.
        guard let secret = Base64.decode(made.secret, .url) else { throw StageFault("release add: not base64url") }
        key = AppKey(id: made.id, secret: Secret(copying: secret.span), ladder: "")
        return try ReleaseKey(
            id: made.id, secret: made.secret, authorityKey: made.authorityKey, app: Setting.app)
    }

    /// What `release add --json` prints.
    private struct MadeRelease: Decodable {
        var id: String
        var secret: String
        var authorityKey: String

        enum CodingKeys: String, CodingKey {
            case id = "key_id"
            case secret
            case authorityKey = "authority_key"
        }
    }

    /// The one that has users and tokens of its own behind the gateway; nil where it goes by what the gateway says.
    private static func backend(
        _ row: RowProfile, _ key: AppKey, _ bank: Bank, _ folder: String
    ) throws(StageFault) -> ReferenceServer? {
        guard row.scheme == .openRoute else { return nil }
        let own = "\(folder)/backend"
        try Files.makeFolder(own)
        return try ReferenceServer(row: row, appKey: key, bank: bank, folder: own)
    }

    private static func enrolling(_ server: ReferenceServer, _ bank: Bank) -> Cast.Enrolling {
        { name, number, password in
            try bank.open(name: name, userID: number)
            try server.add(name: name, userID: number, password: password)
        }
    }

    private static func enrolling(_ gateway: GatewayServer, _ setup: GatewaySetup, _ bank: Bank) -> Cast.Enrolling {
        { name, number, password in
            try bank.open(name: name, userID: number)
            guard let account = setup.account, let password else { return }
            try await gateway.operate(
                ["account", "add", Setting.app, name, "--password-stdin", "--user-id", "\(number)"] + account,
                typing: password)
        }
    }
}

extension AppKey {
    /// One that nobody has seen.
    static func random() -> AppKey {
        let random = SystemRandom()
        func text(_ count: Int) -> String { Hex.encode(random.bytes(count).span) }
        return AppKey(
            id: text(8), secret: Secret(copying: Array(text(16).utf8).span), ladder: text(8))
    }
}
