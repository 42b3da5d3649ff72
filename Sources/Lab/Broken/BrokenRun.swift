#if SABOTAGE
    /// Has every fault of our own server attacked, and the same attack fail where the fault is not.
    package struct BrokenRun: Sendable {
        private let settings: LabSettings
        package let servers: [BrokenServer]

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
            var findings: [BrokenFinding] = []
            for server in servers {
                // Stages of their own: what one attack leaves behind must not hold another off.
                let whole = await attack(server, settings, progress)
                var faulty = settings
                faulty.sabotage = [server.fault]
                findings.append(BrokenFinding(server, broken: await attack(server, faulty, progress), whole: whole))
            }
            return findings
        }

        private func attack(
            _ server: BrokenServer, _ settings: LabSettings, _ progress: @escaping @Sendable (LabProgress) -> Void
        ) async -> Result<Cell, StageFault> {
            let rows = RowCatalogue.all.filter { $0.name == server.row }
            let attacks = AttackCatalogue.all.filter { $0.name == server.attack }
            let matrix = await Lab(settings: settings).run(rows, attacks, progress: progress)
            return matrix.rows.first?.cells[server.attack] ?? .failure(StageFault("there is no such row or attack"))
        }
    }
#endif
