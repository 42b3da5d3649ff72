/// Stages attacks on rows. Each row has a stage of its own, and on it one attack after the other.
package struct Lab: Sendable {
    private let settings: LabSettings

    package init(settings: LabSettings) { self.settings = settings }

    /// All cells of `rows` × `attacks`, in that order. What cannot be staged is an error in its cell; a row whose
    /// server is not installed is said not to have been run.
    package func run(
        _ rows: [RowProfile], _ attacks: [any Attack], progress: @escaping @Sendable (LabProgress) -> Void
    ) async -> Matrix {
        let notRun = rows.compactMap { settings.obstacle(to: $0) }
        let rows = rows.filter { row in !notRun.contains { $0.name == row.name } }
        let count = Count(total: rows.count * attacks.count, tell: progress)
        var finished: [Int: Matrix.Row] = [:]
        await withTaskGroup(of: (Int, Matrix.Row).self) { group in
            var waiting = rows.enumerated().makeIterator()
            func begin() {
                guard let (index, row) = waiting.next() else { return }
                group.addTask { (index, await run(row, attacks, count)) }
            }
            for _ in 0..<max(1, settings.jobs) { begin() }
            while let (index, row) = await group.next() {
                finished[index] = row
                begin()
            }
        }
        return Matrix(rows: rows.indices.compactMap { finished[$0] }, attacks: attacks, notRun: notRun)
    }

    private func run(_ row: RowProfile, _ attacks: [any Attack], _ count: Count) async -> Matrix.Row {
        var result = Matrix.Row(name: row.name, summary: row.summary)
        await count.begin(row.name, nil)
        do {
            let folder = try Files.makeTemporaryFolder("countersign-lab")
            defer { Files.removeFolder(folder) }
            let set = try await StageSet(row, in: folder, settings)
            for attack in attacks {
                await count.begin(row.name, attack.name)
                result.cells[attack.name] = await run(attack, on: set.stage)
                await count.end(row.name, attack.name)
            }
            await set.strike()
        } catch {
            for attack in attacks where result.cells[attack.name] == nil {
                result.cells[attack.name] = .failure(StageFault("the stage cannot be set: \(error)"))
                await count.end(row.name, attack.name)
            }
        }
        return result
    }

    private func run(_ attack: any Attack, on stage: Stage) async -> Result<Cell, StageFault> {
        if let reason = attack.exemption(of: stage.row) { return .success(Cell(.notApplicable, how: reason)) }
        do {
            let outcome = try await attack.run(on: stage)
            stage.network.beHonest()
            let steps = stage.takeSteps()
            switch outcome {
            case .succeeded(let how): return .success(Cell(.fell, how: how, steps: steps))
            case .failed(let how): return .success(Cell(.held, how: how, steps: steps))
            }
        } catch {
            stage.network.beHonest()
            _ = stage.takeSteps()
            return .failure(error as? StageFault ?? StageFault("\(error)"))
        }
    }

    /// Cells that are done, over all rows.
    private actor Count {
        private var done = 0
        private let total: Int
        private let tell: @Sendable (LabProgress) -> Void

        init(total: Int, tell: @escaping @Sendable (LabProgress) -> Void) {
            self.total = total
            self.tell = tell
        }

        func begin(_ row: RowName, _ attack: AttackName?) {
            tell(LabProgress(row: row, attack: attack, done: done, total: total))
        }

        func end(_ row: RowName, _ attack: AttackName) {
            done += 1
            tell(LabProgress(row: row, attack: attack, done: done, total: total))
        }
    }
}
