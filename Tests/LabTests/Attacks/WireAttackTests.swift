import Testing

@testable import CountersignLab

/// The network attacks, each on a vulnerable server and on one that holds: an attack that always succeeds or
/// always fails proves nothing.
@Suite struct WireAttackTests {
    private static let fields = [
        "eavesdrop", "mitm", "tamper-method", "tamper-path", "tamper-query", "tamper-header", "tamper-body",
        "tamper-host", "tamper-ambiguity", "replay-at-once", "replay-after-restart", "replay-second-node",
        "replay-new-timestamp",
    ]

    /// In the order of ``fields``.
    @Test(arguments: [
        ("md5", "FFFFFFFF–FFF–"), ("form-md5", "FFFFHHHFFFFFH"), ("auth-v1", "FFHHHHHFFFFFH"),
        ("auth-v4", "FFHHHHHFFFFFF"), ("sigv4", "FFHHHHHFHFFFH"),
    ])
    func serversOfTheFieldFallAsTheirFlawsSay(row name: String, verdicts: String) async throws {
        let row = try #require(RowCatalogue.all.first { $0.name.description == name })
        let attacks = AttackCatalogue.all.filter { WireAttackTests.fields.contains($0.name.description) }
        let lab = Lab(settings: LabSettings(binary: try CountersignBinary(), jobs: 1))
        let cells = await lab.run(rows: [row], attacks: attacks) { _ in }.rows.first?.cells ?? [:]
        for (field, verdict) in zip(WireAttackTests.fields, verdicts) {
            switch cells[AttackName(field)] {
            case .success(let cell):
                #expect(cell.verdict.rawValue == String(verdict), "\(field): \(cell.how)")
            case .failure(let fault): Issue.record("\(field): \(fault)")
            case nil: Issue.record("\(field): not run")
            }
        }
    }
}
