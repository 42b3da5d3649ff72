import Testing

@testable import CountersignLab

/// Nobody attacks: each row's app does what it does every day, at each row's server. Without this, a dead server would look safe.
@Suite struct OrdinaryDayTests {
    @Test(arguments: RowCatalogue.all)
    func moneyIsSentAndSeen(_ row: RowProfile) async throws {
        let folder = try Files.makeTemporaryFolder("countersign-lab-test")
        defer { Files.removeFolder(folder) }
        let set = try await StageSet(row, in: folder, LabSettings(binary: Binary(binary), jobs: 1))
        let stage = set.stage
        do {
            let victim = try await stage.newVictim()
            try await victim.signIn()
            try await victim.transfer(10, to: stage.thief)
            #expect(try await victim.balance() == Bank.opening - 10)
            #expect(try stage.bank.balance(of: stage.thief) == Bank.opening + 10)
        } catch {
            Issue.record("\(row.name): \(error)")
        }
        await set.strike()
    }
}

/// Beside the tests in the same build.
private let binary: String? = {
    guard let tests = try? Binary().path, let end = tests.lastIndex(of: "/") else { return nil }
    return tests[..<end] + "/countersign"
}()
