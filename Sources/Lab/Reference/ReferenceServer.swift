import CountersignHTTP
import Synchronization

/// A server as teams have it, in this process: one scheme of the field's, faithfully with its flaws, before the bank. What the field keeps in a
/// database lies in an SQLite file; what it does not keep, nothing else does either. Part of the lab only, and reachable on loopback only.
package final class ReferenceServer: StagedServer {
    package let port: UInt16
    private let site: Site
    private let running: Mutex<[LocalServer]>

    /// Listens from now on. `tls` for the rows that have it.
    package init(
        row: RowProfile, appKey: AppKey, bank: Bank, folder: String, tls: ReferenceTLS? = nil
    ) throws(StageFault) {
        let site = try Site(row, appKey, bank, folder, tls)
        let server = try site.serve(on: 0)
        self.site = site
        port = server.port
        running = Mutex([server])
    }

    /// A user of the server's. Where the scheme has no passwords it has no users either, and nothing is kept.
    package func add(name: String, userID: Int64, password: String?) throws(StageFault) {
        guard let password, let kept = try site.kept(password) else { return }
        try site.database.add(FieldDatabase.User(id: userID, name: name, password: kept))
    }

    /// Lets every token run out that there is, as two hours would.
    package func expireTokens() throws(StageFault) { try site.database.file.rows("UPDATE tokens SET expires = 0") }

    package var tlsKey: String? { site.tls?.key }

    package func stolenDatabase() async throws -> [String] {
        let copy = "\(site.folder)/stolen-\(UInt64.random(in: 0...UInt64.max)).db"
        try site.database.file.copy(to: copy)
        return [copy]
    }

    package func restart() async throws {
        await stop()
        let server = try await comeBack()
        running.withLock { $0 = [server] }
    }

    /// A process that is just being started elsewhere in the lab holds copies of all sockets for a moment, of the one that was closed, too.
    private func comeBack() async throws -> LocalServer {
        for _ in 0..<50 {
            if let server = try? site.serve(on: port) { return server }
            try await Task.sleep(for: .milliseconds(40))
        }
        return try site.serve(on: port)
    }

    /// It keeps no file of what it has seen: it does not look.
    package func restartWithoutReplayFile() async throws -> Bool { false }

    package func secondNode() async throws -> SecondNode {
        let server = try site.serve(on: 0)
        running.withLock { $0.append(server) }
        return .listens(on: server.port)
    }

    package func retire(_ key: AppKey) async throws -> Retiring {
        guard case .formMD5 = site.row.scheme else { return .isNotKnownHere }
        site.versions.retire(key.id)
        return .done
    }

    package func bringBack(_ key: AppKey) async throws { site.versions.bringBack(key.id) }

    package func stop() async {
        let servers = running.withLock { servers in
            defer { servers = [] }
            return servers
        }
        for server in servers { server.stop() }
    }
}

/// What the nodes of one server have in common.
private struct Site: Sendable {
    let row: RowProfile
    let folder: String
    let tls: ReferenceTLS?
    let database: FieldDatabase
    let versions = RetiredVersions()
    private let bank: Bank
    private let scheme: any FieldScheme

    init(
        _ row: RowProfile, _ key: AppKey, _ bank: Bank, _ folder: String, _ tls: ReferenceTLS?
    ) throws(StageFault) {
        self.row = row
        self.folder = folder
        self.tls = tls
        self.bank = bank
        database = try FieldDatabase(path: "\(folder)/users.db")
        switch row.scheme {
        case .ladder(let rung): scheme = LadderLogin(rung, key: key.ladder, database)
        case .formMD5: scheme = FieldFormMD5(key, versions, database)
        case .apiKey(.authV1): scheme = FieldAuthV1(app: key)
        case .apiKey(.authV2): scheme = FieldAuthV2(app: key)
        case .apiKey(.authV4): scheme = FieldAuthV4(app: key, protocolName: tls == nil ? "http" : "https")
        case .apiKey(.sigV4): scheme = FieldSigV4(app: key)
        case .tokens, .token: scheme = FieldPasswords(database)
        case .openRoute: scheme = FieldBehindGateway(database)
        case .messageSignaturesWithPassword, .countersign:
            throw StageFault("\(row.name): no server of the field speaks this")
        }
    }

    func kept(_ password: String) throws(StageFault) -> String? { try scheme.kept(password) }

    func serve(on port: UInt16) throws(StageFault) -> LocalServer {
        let (scheme, bank) = (scheme, bank)
        return try LocalServer(port: port, tls: tls?.context) { (request) throws(StageFault) in
            try Site.answer(request, scheme, bank)
        }
    }

    private static func answer(
        _ request: RawRequest, _ scheme: any FieldScheme, _ bank: Bank
    ) throws(StageFault) -> RawResponse {
        if let page = try scheme.page(request) { return page }
        switch try scheme.caller(request) {
        case .known(let name, let parameters):
            return try BankRoutes.answer(request, parameters, for: name, at: bank)
        case .refused(let answer): return answer
        }
    }
}
