/// Stages attacks on rows. Each row has a stage of its own, on which its attacks run one after the other.
package struct Lab: Sendable {
    private let settings: LabSettings

    package init(settings: LabSettings) { self.settings = settings }

    /// Runs all cells of `rows` × `attacks`. A cell that cannot be staged contains an error. A row whose
    /// server is not installed is listed as not run.
    package func run(
        rows: [RowProfile], attacks: [any Attack], progress: @escaping @Sendable (LabProgress) -> Void
    ) async -> Matrix {
        let notRun = rows.compactMap { settings.obstacle(to: $0) }
        let rows = rows.filter { row in !notRun.contains { $0.name == row.name } }
        let count = ProgressCounter(total: rows.count * attacks.count, tell: progress)
        var finished: [Int: Matrix.Row] = [:]
        await withTaskGroup(of: (Int, Matrix.Row).self) { group in
            var waiting = rows.enumerated().makeIterator()
            func begin() {
                guard let (index, row) = waiting.next() else { return }
                group.addTask { (index, await run(row, attacks: attacks, counter: count)) }
            }
            for _ in 0..<max(1, settings.jobs) { begin() }
            while let (index, row) = await group.next() {
                finished[index] = row
                begin()
            }
        }
        return Matrix(rows: rows.indices.compactMap { finished[$0] }, attacks: attacks, notRun: notRun)
    }

    private func run(_ row: RowProfile, attacks: [any Attack], counter count: ProgressCounter) async
        -> Matrix.Row
    {
        var result = Matrix.Row(name: row.name, summary: row.summary)
        await count.begin(row: row.name, attack: nil)
        do {
            let folder = try Files.makeTemporaryFolder("countersign-lab")
            defer { Files.removeFolder(folder) }
            let set = try await StageBuilder(row, in: folder, settings: settings)
            for attack in attacks {
                await count.begin(row: row.name, attack: attack.name)
                result.cells[attack.name] = await run(attack, on: set.stage)
                await count.end(row: row.name, attack: attack.name)
            }
            await set.tearDown()
        } catch {
            for attack in attacks where result.cells[attack.name] == nil {
                result.cells[attack.name] = .failure(LabError("the stage cannot be set: \(error)"))
                await count.end(row: row.name, attack: attack.name)
            }
        }
        return result
    }

    private func run(_ attack: any Attack, on stage: Stage) async -> Result<Cell, LabError> {
        if let reason = attack.exemption(of: stage.row) { return .success(Cell(.notApplicable, how: reason)) }
        do {
            let outcome = try await attack.run(on: stage)
            stage.network.stopIntercepting()
            let steps = stage.takeSteps()
            switch outcome {
            case .succeeded(let how): return .success(Cell(.fell, how: how, steps: steps))
            case .failed(let how): return .success(Cell(.held, how: how, steps: steps))
            }
        } catch {
            stage.network.stopIntercepting()
            _ = stage.takeSteps()
            return .failure(error as? LabError ?? LabError("\(error)"))
        }
    }

    /// Counts completed cells over all rows.
    private actor ProgressCounter {
        private var done = 0
        private let total: Int
        private let tell: @Sendable (LabProgress) -> Void

        init(total: Int, tell: @escaping @Sendable (LabProgress) -> Void) {
            self.total = total
            self.tell = tell
        }

        func begin(row: RowName, attack: AttackName?) {
            tell(LabProgress(row: row, attack: attack, done: done, total: total))
        }

        func end(row: RowName, attack: AttackName) {
            done += 1
            tell(LabProgress(row: row, attack: attack, done: done, total: total))
        }
    }
}

/// The settings of a run.
package struct LabSettings: Sendable {
    /// The binary that runs gateways.
    package var binary: CountersignBinary
    /// Rows that run concurrently: they wait more than they compute.
    package var jobs: Int
    /// Faults of our gateways; only `countersign-breakable` supports them.
    package var sabotage: [String] = []

    /// nginx, which asks our gateway in some rows; nil where it is not installed, and those rows are not run.
    package var nginx: String? = Nginx.installed(path: CountersignBinary.environment["PATH"] ?? "")

    /// The tools for listening and interception, in attacks that do only that.
    package var tools = LabTools()

    package init(binary: CountersignBinary, jobs: Int) {
        self.binary = binary
        self.jobs = jobs
    }
}

extension LabSettings {
    /// Why a row is not run; nil where it can be.
    func obstacle(to row: RowProfile) -> Matrix.RowNotRun? {
        guard row.server == .nginxAsking, nginx == nil else { return nil }
        return Matrix.RowNotRun(name: row.name, summary: row.summary, reason: Nginx.absence)
    }
}

/// Progress for a user interface.
package struct LabProgress: Sendable {
    package var row: RowName
    /// Nil while the stage of the row is being built.
    package var attack: AttackName?
    /// Completed cells, of `total`.
    package var done: Int
    package var total: Int
}
