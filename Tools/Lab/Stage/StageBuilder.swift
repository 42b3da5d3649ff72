import Countersign
import CountersignSeal
import CountersignTestServer
import CountersignWire
import FoundationEssentials

/// Builds and tears down the stage of a row; the only place that combines the parts.
struct StageBuilder {
    let stage: Stage
    private let upstream: BankUpstream?

    init(_ row: RowProfile, in folder: String, settings: LabSettings) async throws {
        let isOldTLS = row.server == .reference && row.transport != .plain
        let authorities = try StageCertificates(serverKey: isOldTLS ? .rsa(2_048) : .p256)
        let network = try Network(
            security: row.transport == .plain
                ? .plain : .tls(authority: authorities.attacker, host: BankApp.host),
            tools: settings.tools)
        let bank = try Bank(folder: folder)
        let authority = "\(BankApp.host):\(network.publicPort)"
        var key = AppKey.random()
        let server: any StagedServer
        let enrol: VictimFactory.AccountEnrolment
        var release: ReleaseKey?
        switch row.server {
        case .reference:
            upstream = nil
            let reference = try ReferenceServer(
                row: row, appKey: key, bank: bank, folder: folder,
                tls: isOldTLS ? try ReferenceTLS(authorities.server, folder: folder) : nil)
            server = reference
            enrol = StageBuilder.enrolment(at: reference, bank: bank)
        case .gateway, .nginxAsking:
            let backend = try StageBuilder.backend(for: row, key: key, bank: bank, folder: folder)
            let bankPort: UInt16
            if let backend {
                (upstream, bankPort) = (nil, backend.port)
            } else {
                let behind = try BankUpstream(
                    bank, front: row.server == .nginxAsking ? .askingProxy : .gateway)
                (upstream, bankPort) = (behind, behind.port)
            }
            var plan = GatewayServer.Plan(
                binary: settings.binary, folder: "\(folder)/gateway", authority: authority, bank: bankPort,
                authorities: authorities, transport: row.transport, sabotage: settings.sabotage)
            if row.server == .nginxAsking { NginxDecideServer.prepare(&plan) }
            let gateway = try GatewayServer(plan)
            release = try await StageBuilder.setUp(
                gateway, setup: GatewaySetup(row: row, key: key), key: &key)
            try await gateway.start()
            if let backend {
                server = OpenRouteServer(gateway, before: backend)
                enrol = StageBuilder.enrolment(at: backend, bank: bank)
            } else {
                server =
                    row.server == .nginxAsking
                    ? try await NginxDecideServer(
                        gateway, before: bankPort, certificates: authorities, transport: row.transport,
                        folder: "\(folder)/nginx",
                        program: settings.nginx) : gateway
                enrol = StageBuilder.enrolment(
                    at: gateway, setup: GatewaySetup(row: row, key: key), bank: bank)
            }
        }
        network.setServerPort(server.port)
        let thief = "mallory"
        try bank.open(name: thief, userID: 666)
        let words = WordList.standard
        let destination = SigningContext(
            authority: authority, transport: row.transport == .plain ? .plain : .tls,
            platform: BankApp.platform,
            version: BankApp.version)
        let cast = VictimFactory(
            row: row, key: key, release: release, bank: bank, words: words, authorities: authorities,
            folder: folder,
            origin: (row.transport == .plain ? "http://" : "https://") + authority, enrol: enrol)
        stage = Stage(
            Stage.Parts(
                row: row, network: network, bank: bank, server: server,
                attackKit: AttackKitCatalogue.attackKit(for: row, in: destination),
                appKey: key, thief: thief, words: words, folder: folder, victims: cast))
    }

    /// Ends everything that was started.
    func tearDown() async {
        stage.network.stop()
        await stage.server.stop()
        upstream?.stop()
    }

    /// Creates the app, its policy and its release on the gateway. Returns the app's key if the gateway made
    /// it.
    private static func setUp(
        _ gateway: GatewayServer, setup: GatewaySetup, key: inout AppKey
    ) async throws -> ReleaseKey? {
        // The lab's accounts have short passwords, which its guessers find within their time.
        try await gateway.operate(
            ["app", "add", BankApp.name, "--require", setup.level, "--set", "password-min=1"], typing: "")
        try await gateway.operate(["app", "policy", BankApp.name] + setup.policy.flatMap { ["--set", $0] })
        let version = ["--platform", BankApp.platform, "--version", BankApp.version, "--json"]
        let printed = try await gateway.operate(
            ["release", "add", BankApp.name] + version + setup.release,
            typing: setup.release.isEmpty ? "" : setup.key.secret.withExposedBytes { $0.text })
        guard setup.row.scheme == .countersign || setup.row.scheme == .messageSignaturesWithPassword else {
            return nil
        }
        let made = try JSONDecoder().decode(MadeRelease.self, from: Data(printed))
        // Requests are signed with the decoded bytes.
        guard let secret = Base64.decode(made.secret, as: .url) else {
            throw LabError("release add: not base64url")
        }
        key = AppKey(id: made.id, secret: Secret(copying: secret.span), ladder: "")
        return try ReleaseKey(
            id: made.id, secret: made.secret, authorityKey: made.authorityKey, app: BankApp.name)
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

    /// A backend with users and tokens of its own behind the gateway; nil if the bank relies on the gateway's
    /// fields.
    private static func backend(
        for row: RowProfile, key: AppKey, bank: Bank, folder: String
    ) throws(LabError) -> ReferenceServer? {
        guard row.scheme == .openRoute else { return nil }
        let own = "\(folder)/backend"
        try Files.makeFolder(own)
        return try ReferenceServer(row: row, appKey: key, bank: bank, folder: own)
    }

    private static func enrolment(at server: ReferenceServer, bank: Bank) -> VictimFactory.AccountEnrolment {
        { name, number, password in
            try bank.open(name: name, userID: number)
            try server.add(name: name, userID: number, password: password)
        }
    }

    private static func enrolment(at gateway: GatewayServer, setup: GatewaySetup, bank: Bank)
        -> VictimFactory.AccountEnrolment
    {
        { name, number, password in
            try bank.open(name: name, userID: number)
            guard let account = setup.account, let password else { return }
            try await gateway.operate(
                ["account", "add", BankApp.name, name, "--password-stdin", "--user-id", "\(number)"]
                    + account,
                typing: password)
        }
    }
}

extension AppKey {
    /// A new random key.
    static func random() -> AppKey {
        let random = SystemRandom()
        func text(_ count: Int) -> String { Hex.encode(random.bytes(count).span) }
        return AppKey(
            id: text(8), secret: Secret(copying: Array(text(16).utf8).span), ladder: text(8))
    }
}
