/// What a run is made with.
package struct LabSettings: Sendable {
    /// The binary that gateways are.
    package var binary: Binary
    /// Rows at work at once: they wait more than they compute.
    package var jobs: Int
    /// Faults that our gateways are to have; for builds that know them.
    package var sabotage: [String] = []

    /// The program that asks our gateway in some rows; nil where it is not installed, and those rows are not run.
    package var nginx: String? = Nginx.installed(path: Binary.environment["PATH"] ?? "")

    /// What the attacker listens and stands in the middle with, where an attack does no more than that.
    package var tools = LabTools()

    package init(binary: Binary, jobs: Int) {
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

/// What is being done, for who waits.
package struct LabProgress: Sendable {
    package var row: RowName
    /// Nil while the row's stage is being set.
    package var attack: AttackName?
    /// Cells that are done, of `total`.
    package var done: Int
    package var total: Int
}
