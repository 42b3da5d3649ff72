#if SABOTAGE
    /// Has every fault of our own server attacked, and the same attack fail where the fault is not.
    package struct BrokenRun: Sendable {
        private let settings: LabSettings
        private let servers: [BrokenServer]

        /// `settings` without faults.
        package init(settings: LabSettings, servers: [BrokenServer] = BrokenServer.all) {
            self.settings = settings
            self.servers = servers
        }

        /// Throws where the binary has faults for which no attack is named.
        package func run(
            progress: @escaping @Sendable (LabProgress) -> Void
        ) async throws(StageFault) -> [BrokenFinding] {
            let known = try await settings.binary.faults()
            let unattended = Set(known).subtracting(BrokenServer.all.map(\.fault))
            guard unattended.isEmpty else {
                throw StageFault("no attack is named for \(unattended.sorted().joined(separator: ", "))")
            }
            let sound = await attackSoundServers(progress)
            var findings: [BrokenFinding] = []
            for server in servers {
                let broken =
                    known.contains(server.fault)
                    ? await attack(server, progress) : .failure(StageFault("the binary does not know this fault"))
                let whole = sound[server.row]?[server.attack] ?? .failure(StageFault("there is no such row or attack"))
                findings.append(BrokenFinding(server, broken: broken, whole: whole))
            }
            return findings
        }

        private typealias Found = Result<Cell, StageFault>

        /// Each attack that is to find a fault, where there is none.
        private func attackSoundServers(
            _ progress: @escaping @Sendable (LabProgress) -> Void
        ) async -> [RowName: [AttackName: Found]] {
            var found: [RowName: [AttackName: Found]] = [:]
            for name in Set(servers.map(\.row)) {
                let wanted = Set(servers.filter { $0.row == name }.map(\.attack))
                let attacks = AttackCatalogue.all.filter { wanted.contains($0.name) }
                let rows = RowCatalogue.all.filter { $0.name == name }
                found[name] = await Lab(settings: settings).run(rows, attacks, progress: progress).rows.first?.cells
            }
            return found
        }

        private func attack(
            _ server: BrokenServer, _ progress: @escaping @Sendable (LabProgress) -> Void
        ) async -> Found {
            var settings = settings
            settings.sabotage = [server.fault]
            let rows = RowCatalogue.all.filter { $0.name == server.row }
            let attacks = AttackCatalogue.all.filter { $0.name == server.attack }
            let matrix = await Lab(settings: settings).run(rows, attacks, progress: progress)
            return matrix.rows.first?.cells[server.attack] ?? .failure(StageFault("there is no such row or attack"))
        }
    }
#endif
