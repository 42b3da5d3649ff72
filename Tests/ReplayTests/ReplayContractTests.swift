import CountersignGate
import CountersignSchemes
import CountersignWire
import DatabaseFixture
import Foundation
import Testing

/// What every replay guard does: the same tests run on the file, on Redis and on PostgreSQL.
@Suite struct ReplayContractTests {
    enum Kind: String, CaseIterable { case file, redis, postgreSQL }

    static let kinds: [Kind] = Kind.allCases.filter { kind in
        switch kind {
        case .file: true
        case .redis: TestRedis.isThere
        case .postgreSQL: TestDatabases.isThere
        }
    }

    /// A guard with an own place, and what must live as long. Shared guards have a window of an hour: on a slow
    /// machine a test waits minutes for its turn, and an entry must not end meanwhile.
    private struct Scene {
        let guarding: any ReplayGuard
        /// Opened again over the same entries.
        let again: any ReplayGuard
        let nodes: [TestNode]
        /// Held for as long as the guards.
        let deployment: TestDeployment?
        let server: TestRedis?

        init(_ kind: Kind) async throws {
            switch kind {
            case .file:
                let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
                    "cs-contract-\(UUID().uuidString)"
                ).path
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                let file = try ReplayFile(path: "\(folder)/replay", expecting: nil, now: SystemTime().now)
                (guarding, again, nodes) = (file, file, [])
                (deployment, server) = (nil, nil)
            case .redis:
                let server = try TestRedis()
                let deployment = try TestDeployment()
                let one = try await deployment.start(server.url, window: 3_600)
                let two = try await deployment.start(server.url, window: 3_600)
                (guarding, again, nodes) = (one.replay, two.replay, [one, two])
                (self.deployment, self.server) = (deployment, server)
            case .postgreSQL:
                let address = try #require(TestDatabases.shared).make()
                let deployment = try TestDeployment(address)
                let one = try await deployment.start(address, window: 3_600)
                let two = try await deployment.start(address, window: 3_600)
                (guarding, again, nodes) = (one.replay, two.replay, [one, two])
                (self.deployment, server) = (deployment, nil)
            }
        }

        func end() { for node in nodes { node.stop() } }
    }

    private func code(_ entry: ReplayEntry, in guarding: any ReplayGuard) async -> Refusal.Code? {
        do throws(Refusal) {
            if try guarding.insertIfReady(entry) { return nil }
            try await guarding.insert(entry)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("what makes two requests the same", arguments: kinds)
    func sameness(_ kind: Kind) async throws {
        let scene = try await Scene(kind)
        defer { scene.end() }
        // On PostgreSQL, a creation time of the next minute is another entry.
        let created = SystemTime().now
        #expect(await code(entry("n1", created: created), in: scene.guarding) == nil)
        let rows: [(key: String, scheme: SchemeName, nonce: String, code: Refusal.Code?)] = [
            ("k1", .messageSignatures, "n1", .replayed), ("k2", .messageSignatures, "n1", nil),
            ("k1", .formMD5, "n1", nil), ("k1", .messageSignatures, "n2", nil),
            ("k1n", .messageSignatures, "1", nil),
        ]
        for row in rows {
            let same = entry(row.nonce, created: created, key: row.key, scheme: row.scheme)
            #expect(await code(same, in: scene.guarding) == row.code, "\(row)")
        }
        #expect(await code(entry("n1", created: created), in: scene.again) == .replayed)
    }

    @Test("of several at once one is first", arguments: kinds)
    func once(_ kind: Kind) async throws {
        let scene = try await Scene(kind)
        defer { scene.end() }
        for round in 0..<200 {
            let entry = entry("round \(round)")
            let admitted = await withTaskGroup(of: Bool.self, returning: Int.self) { group in
                for number in 0..<6 {
                    let guarding = number % 2 == 0 ? scene.guarding : scene.again
                    group.addTask { await code(entry, in: guarding) == nil }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(admitted == 1)
        }
    }

    @Test("times that no guard can keep are refused", arguments: kinds)
    func times(_ kind: Kind) async throws {
        let scene = try await Scene(kind)
        defer { scene.end() }
        for created in [Int64.min, -1, 0, 1 << 32, .max] {
            #expect(await code(entry("t", created: created), in: scene.guarding) == .stale)
        }
    }

    @Test("an old entry is known for as long as its signature may be fresh", arguments: kinds)
    func retention(_ kind: Kind) async throws {
        let scene = try await Scene(kind)
        defer { scene.end() }
        let old = entry("old", created: SystemTime().now - 300)
        #expect(await code(old, in: scene.guarding) == nil)
        #expect(await code(old, in: scene.guarding) == .replayed)
    }

    @Test("a look-up changes nothing", arguments: kinds)
    func lookUp(_ kind: Kind) async throws {
        let scene = try await Scene(kind)
        defer { scene.end() }
        try scene.guarding.lookUp(entry("n"))
        #expect(await code(entry("n"), in: scene.guarding) == nil)
    }
}
