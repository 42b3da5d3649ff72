import CountersignHTTP
import CountersignMemory
import CountersignTestServer
import Glibc

/// A typical legacy server, in this process: one scheme, with its known flaws, in front of the bank. State
/// that deployed servers keep in a database is in an SQLite file; there is no other state. Part of the lab
/// only, and reachable on loopback only.
package final class ReferenceServer: StagedServer {
    package let port: UInt16
    private let site: ReferenceServerState
    private let running: Locked<[LocalServer]>

    /// Starts to listen. `tls` is nil for rows without TLS.
    package init(
        row: RowProfile, appKey: AppKey, bank: Bank, folder: String, tls: ReferenceTLS? = nil
    ) throws(LabError) {
        let site = try ReferenceServerState(row: row, key: appKey, bank: bank, folder: folder, tls: tls)
        let server = try site.serve(on: 0)
        self.site = site
        port = server.port
        running = Locked([server])
    }

    /// Adds a user. Does nothing if the scheme has no passwords, since it then has no users.
    package func add(name: String, userID: Int64, password: String?) throws(LabError) {
        guard let password, let kept = try site.storedForm(of: password) else { return }
        try site.database.add(ReferenceDatabase.User(id: userID, name: name, password: kept))
    }

    /// Expires every token, as two hours would.
    package func expireTokens() throws(LabError) {
        try site.database.file.query("UPDATE tokens SET expires = 0")
    }

    package var tlsKey: String? { site.tls?.key }

    package func copyDatabase() async throws -> [String] {
        let copy = "\(site.folder)/stolen-\(UInt64.random(in: 0...UInt64.max)).db"
        try site.database.file.copy(to: copy)
        return [copy]
    }

    package func restart() async throws {
        await stop()
        let server = try await listenAgain()
        running.with { $0 = [server] }
    }

    /// Retries: a child process that the lab is starting holds copies of all sockets for a moment, including
    /// the closed one.
    private func listenAgain() async throws -> LocalServer {
        for _ in 0..<50 {
            if let server = try? site.serve(on: port) { return server }
            try await Task.sleep(for: .milliseconds(40))
        }
        return try site.serve(on: port)
    }

    /// False: the server keeps no file of seen requests.
    package func restartWithoutReplayFile() async throws -> Bool { false }

    package func startSecondNode() async throws -> SecondNodeOutcome {
        let server = try site.serve(on: 0)
        running.with { $0.append(server) }
        return .listens(on: server.port)
    }

    package func retire(_ key: AppKey) async throws -> RetirementOutcome {
        guard case .formMD5 = site.row.scheme else { return .unsupported }
        site.versions.retire(key.id)
        return .done
    }

    package func reinstate(_ key: AppKey) async throws { site.versions.bringBack(key.id) }

    package func stop() async {
        let servers = running.with { servers in
            defer { servers = [] }
            return servers
        }
        for server in servers { server.stop() }
    }
}

/// The state that the nodes of one server share.
private struct ReferenceServerState: Sendable {
    let row: RowProfile
    let folder: String
    let tls: ReferenceTLS?
    let database: ReferenceDatabase
    let versions = RetiredVersions()
    private let bank: Bank
    private let scheme: any ReferenceScheme

    init(
        row: RowProfile, key: AppKey, bank: Bank, folder: String, tls: ReferenceTLS?
    ) throws(LabError) {
        self.row = row
        self.folder = folder
        self.tls = tls
        self.bank = bank
        database = try ReferenceDatabase(path: "\(folder)/users.db")
        switch row.scheme {
        case .ladder(let rung): scheme = ReferenceLadderLogin(rung, key: key.ladder, database: database)
        case .formMD5: scheme = ReferenceFormMD5(app: key, versions: versions, database: database)
        case .apiKey(.authV1): scheme = ReferenceAuthV1(app: key)
        case .apiKey(.authV2): scheme = ReferenceAuthV2(app: key)
        case .apiKey(.authV4): scheme = ReferenceAuthV4(app: key, protocolName: tls == nil ? "http" : "https")
        case .apiKey(.sigV4): scheme = ReferenceSigV4(app: key)
        case .tokens, .token: scheme = ReferencePasswordLogin(database)
        case .openRoute: scheme = ReferenceOpenRouteBackend(database)
        case .messageSignaturesWithPassword, .countersign:
            throw LabError("\(row.name): no server of the field speaks this")
        }
    }

    func storedForm(of password: String) throws(LabError) -> String? { try scheme.storedForm(of: password) }

    func serve(on port: UInt16) throws(LabError) -> LocalServer {
        let (scheme, bank) = (scheme, bank)
        return try LocalServer(port: port, tls: tls?.context) { (request) throws(LabError) in
            try ReferenceServerState.respond(to: request, scheme: scheme, bank: bank)
        }
    }

    private static func respond(
        to request: RawRequest, scheme: any ReferenceScheme, bank: Bank
    ) throws(LabError) -> RawResponse {
        if let page = try scheme.page(request) { return page }
        switch try scheme.caller(request) {
        case .known(let name, let parameters):
            return try BankRoutes.respond(to: request, parameters: parameters, for: name, at: bank)
        case .refused(let answer): return answer
        }
    }
}

/// TLS as configured on an old server: TLS 1.2 with RSA key exchange, which has no forward secrecy: recorded
/// traffic can be decrypted later with the certificate's key. That key must be an RSA key.
package struct ReferenceTLS: Sendable {
    /// The private key in PEM, which the attack ``LeakedTLSKeyAttack`` uses.
    package let key: String
    let context: TLSContext

    /// Writes the certificate and its key into `folder`.
    package init(_ server: IssuedCertificate, folder: String) throws(LabError) {
        do {
            let pem = try server.pem()
            key = String(decoding: pem.key, as: UTF8.self)
            let (certificate, key) = ("\(folder)/server.pem", "\(folder)/server.key")
            try Files.write(pem.certificate, to: certificate)
            try Files.write(pem.key, to: key)
            context = try TLSContext(preferringRSAKeyExchangeWithoutForwardSecrecy: certificate, key: key)
        } catch {
            throw LabError("TLS as old servers have it: \(error)")
        }
    }
}
